//! Lifecycle generations (§3.6): how often a rank's membership has changed in a way that needs a
//! reset.

use super::status::RankState;
use crate::id::{Generation, RankKey};
use alloc::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Entry {
    generation: Generation,
    ever_active: bool,
    /// The status in the last view; `None` = absent from it.
    previous: Option<RankState>,
}

/// What the tracker knows of every rank it has seen and not forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Tracker {
    entries: BTreeMap<RankKey, Entry>,
    /// The entries of ranks that are not expected.
    idle: BTreeSet<RankKey>,
    /// Where a rank without an entry begins: never below what a forgotten entry said.
    floor: Generation,
}

/// Whether a rank's change of status needs a reset. `None` = it was not in the last view.
fn needs_reset(previous: Option<&RankState>, current: &RankState, ever_active: bool) -> bool {
    match (previous, current) {
        (None, RankState::Missing | RankState::Active(_) | RankState::Ambiguous(_))
        | (Some(RankState::Missing), RankState::Active(_)) => ever_active,
        (Some(RankState::Missing), RankState::Missing) => false,
        (Some(RankState::Missing), RankState::Ambiguous(_))
        | (Some(RankState::Active(_) | RankState::Ambiguous(_)), RankState::Missing)
        | (Some(RankState::Active(_)), RankState::Ambiguous(_))
        | (Some(RankState::Ambiguous(_)), RankState::Active(_)) => true,
        (Some(RankState::Active(before)), RankState::Active(now)) => before != now,
        (Some(RankState::Ambiguous(before)), RankState::Ambiguous(now)) => before != now,
    }
}

fn step(generation: &mut Generation) {
    generation.0 = generation.0.saturating_add(1);
}

impl Tracker {
    /// G2: the status of an expected rank in the next view. Returns its generation if either
    /// differs from the last view.
    pub(super) fn observe(
        &mut self,
        rank: RankKey,
        current: RankState,
        remapped: bool,
    ) -> Option<Generation> {
        let floor = self.floor;
        let entry = self.entries.entry(rank).or_insert_with(|| Entry {
            generation: floor,
            ever_active: false,
            previous: None,
        });
        if entry.previous.is_none() {
            self.idle.remove(&rank);
        }
        let moved = remapped || needs_reset(entry.previous.as_ref(), &current, entry.ever_active);
        if moved {
            step(&mut entry.generation);
        }
        entry.ever_active |= current.is_active();
        let differs = moved || entry.previous.as_ref() != Some(&current);
        entry.previous = Some(current);
        differs.then_some(entry.generation)
    }

    /// G3: a rank that is not expected in the next view. Whether it was in the last one.
    pub(super) fn leave(&mut self, rank: RankKey) -> bool {
        let Some(entry) = self.entries.get_mut(&rank) else { return false };
        if entry.previous.take().is_none() {
            return false;
        }
        if entry.ever_active {
            step(&mut entry.generation);
        }
        self.idle.insert(rank);
        true
    }

    /// Forgets idle ranks until `keep` are left, and returns how many it forgot (B14).
    ///
    /// No fence is lost: leaving has moved an entry's generation beyond all that the rank was
    /// active under, and the floor rises to it, so a rank that returns can never show an old value.
    pub(super) fn forget_idle(&mut self, keep: usize) -> u64 {
        let mut forgotten = 0;
        while self.idle.len() > keep {
            let Some(rank) = self.idle.pop_first() else { break };
            if let Some(entry) = self.entries.remove(&rank) {
                self.floor = self.floor.max(entry.generation);
                forgotten += 1;
            }
        }
        forgotten
    }

    /// The status in the last view.
    pub(super) fn state(&self, rank: RankKey) -> Option<&RankState> {
        self.entries.get(&rank)?.previous.as_ref()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PublisherId;
    use crate::membership::status::Cause;

    // rule: 3.6/G2
    #[test]
    fn the_last_generation_is_the_last() {
        let rank = RankKey::new(1, 0);
        let mut tracker = Tracker { floor: Generation(u64::MAX - 1), ..Tracker::default() };
        let conflict = |id| RankState::Ambiguous(Cause::ConflictingDescriptor(PublisherId(id)));
        assert_eq!(
            tracker.observe(rank, RankState::Missing, false),
            Some(Generation(u64::MAX - 1))
        );
        assert_eq!(tracker.observe(rank, conflict(1), false), Some(Generation(u64::MAX)));
        assert_eq!(tracker.observe(rank, conflict(2), false), Some(Generation(u64::MAX)));
        assert_eq!(tracker.observe(rank, conflict(2), false), None);
    }
}
