//! Which (tier, group) pairs a rank uses, and which of them decide a match.
//!
//! A *lane* is one (tier, group) pair of one rank, numbered so that 64 of them fit a word. What a
//! rank holds of a block is then one word per place, and a kind that is learned later takes effect
//! for blocks stored before, because only the words in `required` change.
//!
//! Rules (`wire.md` §6): a store that says what its group is teaches it (PF-7). A group decides
//! matches when it was learned to be main attention, or is group 0 (or none) and was not learned
//! (PF-8 to PF-11). Where a rank has several deciding groups in a tier, all of them must hold a
//! block, or the engine could not use it.

use crate::event::{ResidencyDomain, SpecKind, Tier};
use alloc::vec::Vec;

/// Lanes of one rank.
pub(super) const MAX_LANES: usize = 64;
/// Groups whose kind is remembered for one rank.
const MAX_KINDS: usize = 256;

/// Number of a lane, below [`MAX_LANES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane(u8);

impl Lane {
    pub(super) fn bit(self) -> u64 {
        1 << self.0
    }
}

/// Invariants: a lane that any entry uses is in `used`; `by_tier` and `required` follow from the
/// other fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    lanes: Vec<(Tier, u32)>,
    /// Lanes stored to since the last reset, by residency domain.
    used: [u64; 2],
    kinds: Vec<(u32, SpecKind)>,
    by_tier: [u64; 4],
    required: [u64; 4],
}

const fn domain_index(domain: ResidencyDomain) -> usize {
    match domain {
        ResidencyDomain::Worker => 0,
        ResidencyDomain::CacheOwner => 1,
    }
}

impl Lanes {
    /// The lane of a store, marked as used. `None`: the rank has used too many.
    pub(super) fn open(&mut self, tier: Tier, group: u32, domain: ResidencyDomain) -> Option<Lane> {
        let in_use = self.used[0] | self.used[1];
        let lane = match self.find(tier, group) {
            Some(lane) => lane,
            None => {
                let number = in_use.trailing_ones();
                let lane = Lane(u8::try_from(number).ok().filter(|&n| usize::from(n) < MAX_LANES)?);
                match self.lanes.get_mut(usize::from(lane.0)) {
                    Some(unused) => *unused = (tier, group),
                    None => self.lanes.push((tier, group)),
                }
                lane
            }
        };
        let used = &mut self.used[domain_index(domain)];
        if *used & lane.bit() == 0 {
            *used |= lane.bit();
            self.derive();
        }
        Some(lane)
    }

    /// The lane of a remove.
    pub(super) fn find(&self, tier: Tier, group: u32) -> Option<Lane> {
        let at = self.lanes.iter().position(|&lane| lane == (tier, group))?;
        u8::try_from(at).ok().map(Lane)
    }

    /// Tier and group of a lane.
    pub(super) fn describe(&self, lane: Lane) -> (Tier, u32) {
        self.lanes[usize::from(lane.0)]
    }

    /// Learns what a group is; the last word counts. False: too many groups are known already.
    pub(super) fn teach(&mut self, group: u32, kind: SpecKind) -> bool {
        let room = self.kinds.len() < MAX_KINDS;
        match self.kinds.iter_mut().find(|known| known.0 == group) {
            Some(known) if known.1 == kind => return true,
            Some(known) => known.1 = kind,
            None if room => self.kinds.push((group, kind)),
            None => return false,
        }
        self.derive();
        true
    }

    /// Forgets what the blocks of `domain` used; entries of that domain must be gone.
    pub(super) fn forget_use(&mut self, domain: ResidencyDomain) {
        self.used[domain_index(domain)] = 0;
        self.derive();
    }

    /// Forgets what the groups are.
    pub(super) fn forget_kinds(&mut self) {
        self.kinds.clear();
        self.derive();
    }

    fn decides(&self, group: u32) -> bool {
        match self.kinds.iter().find(|known| known.0 == group) {
            Some((_, SpecKind::MainAttention)) => true,
            Some((_, SpecKind::Other | SpecKind::Unknown)) => false,
            None => group == 0,
        }
    }

    fn derive(&mut self) {
        let used = self.used[0] | self.used[1];
        let (mut by_tier, mut required) = ([0; 4], [0; 4]);
        for (number, &(tier, group)) in self.lanes.iter().enumerate() {
            let bit = 1 << number;
            by_tier[tier.index()] |= bit;
            if used & bit != 0 && self.decides(group) {
                required[tier.index()] |= bit;
            }
        }
        (self.by_tier, self.required) = (by_tier, required);
    }

    /// The lanes of each tier.
    pub(super) fn by_tier(&self) -> [u64; 4] {
        self.by_tier
    }

    /// For each tier the lanes that must all hold a block for it to count there; 0: none counts.
    pub(super) fn required(&self) -> [u64; 4] {
        self.required
    }
}
