//! From changed inputs to the next snapshot: statuses, generations, and what differs.

use super::coordinator::{Coordinator, Discovery, Update};
use super::endpoint::Resolution;
use super::expected::Dirty;
use super::snapshot::MemberRank;
use super::status::{Cause, RankState};
use super::store::Store;
use crate::id::RankKey;
use alloc::vec::Vec;
use core::mem;

impl Coordinator {
    /// Brings the snapshot up to date (G1 to G4, M8). Every input ends here, also one that changed
    /// nothing: the tracker sees each view, sent or not (G6).
    pub(super) fn publish(&mut self, mut dirty: Dirty) -> Update {
        let kind = mem::discriminant(self.expected.resolution());
        let resolution_changed = self.expected.settle(&mut dirty);
        let kind_changed = kind != mem::discriminant(self.expected.resolution());
        if resolution_changed {
            self.forget_advertisements();
            dirty.ranks.extend(self.expected.ranks());
        }
        let remapped = resolution_changed && self.begun;
        self.begun = true;
        dirty.ranks.sort_unstable();
        dirty.ranks.dedup();
        let changes = self.track(&dirty.ranks, remapped);
        let suspect = self.suspect();
        let snapshot = !changes.is_empty() || kind_changed || suspect != self.membership.suspect();
        if !snapshot && !resolution_changed && dirty.workers.is_empty() {
            return Update::Unchanged;
        }
        self.changed_workers.clear();
        self.changed_workers.append(&mut dirty.workers);
        self.changed_workers.extend(changes.iter().map(|(rank, _)| rank.worker));
        self.changed_workers.sort_unstable();
        self.changed_workers.dedup();
        if !snapshot {
            return Update::View;
        }
        self.stats.snapshots += 1;
        let mut next = self.membership.begin_next();
        next.set_suspect(suspect);
        for (rank, member) in changes {
            match member {
                Some(member) => next.set(member),
                None => next.remove(rank),
            }
        }
        Update::Snapshot
    }

    /// Feeds the ranks to the tracker and the gauge; returns those that differ, `None` = left.
    fn track(&mut self, ranks: &[RankKey], remapped: bool) -> Vec<(RankKey, Option<MemberRank>)> {
        let mut changes = Vec::new();
        for &key in ranks {
            if !self.expected.contains(key) {
                self.mismatch.remove(key);
                if self.tracker.leave(key) {
                    changes.push((key, None));
                }
                continue;
            }
            let state = match self.expected.resolution() {
                Resolution::Resolved(_) => self.known.state(key),
                Resolution::Ambiguous(_) => RankState::Ambiguous(Cause::EndpointMapping),
            };
            let status = state.status();
            if let Some(worker) = self.expected.worker(key.worker) {
                self.mismatch.set(key, status, worker.publishing, worker.recovery_expected);
            }
            if let Some(generation) = self.tracker.observe(key, state, remapped) {
                changes.push((key, Some(MemberRank { key, generation, status, ready: true })));
            }
        }
        let keep = if self.policy.forget_idle { 0 } else { self.policy.idle_ranks_max };
        self.stats.forgotten += self.tracker.forget_idle(keep);
        changes
    }

    const fn suspect(&self) -> bool {
        match self.discovery {
            Discovery::Suspect { .. } => true,
            Discovery::Current | Discovery::Ended => false,
        }
    }

    /// Another endpoint: its advertisements are listed afresh, and nothing of the old one's is left
    /// to be suspected. An input that has ended stays ended.
    fn forget_advertisements(&mut self) {
        self.known = Store::default();
        match &mut self.discovery {
            Discovery::Suspect { until: Some(_), .. } => self.discovery = Discovery::Current,
            Discovery::Suspect { listing, until: None } => *listing = Store::default(),
            Discovery::Current | Discovery::Ended => {}
        }
    }
}
