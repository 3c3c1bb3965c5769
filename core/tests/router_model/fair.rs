//! The end of a case: faults stop and everything comes right (L1 to L3); ranks leave; the machine ends.

use kvmirror_core::membership::SourceKind;
use kvmirror_core::router::{RankView, TransportChange, Trust};
use kvmirror_core::time::Micros;

use crate::history::Change;
use crate::profile::Profile;
use crate::source::Twist;
use crate::steps::{Fate, Step};
use crate::world::{Status, World};

/// Inputs after which nothing may be open any more, or due within a minute.
const PATIENCE: usize = 500;

impl World {
    /// Every command succeeds and every question is answered honestly, until nothing is open.
    fn quiet(&mut self) {
        for _ in 0..PATIENCE {
            if self.breach.is_some() {
                return;
            }
            let open = self.questions.last().copied();
            let busy = self.ranks.iter().position(|rank| rank.op.is_some());
            match (busy, open) {
                (Some(rank), _) => self.step(&Step::Complete { rank, ok: true, flaw: None }),
                (None, Some(question)) if !self.shut => self.answer(question, Twist::HONEST),
                (None, Some(_) | None) => return,
            }
        }
        // W-L9: the reference asks again without end for what nobody has.
        let bounded = self.profile == Profile::Hardened;
        self.require(!bounded, || "work without end".to_string());
    }

    /// So much time passes, deadline by deadline.
    fn wait(&mut self, span: Micros) {
        let end = self.now.after(span);
        for _ in 0..PATIENCE {
            self.quiet();
            match self.router.next_deadline() {
                Some(at) if at <= end && self.breach.is_none() => {
                    self.now = self.now.max(at);
                    self.feed(kvmirror_core::router::Input::Timeout);
                }
                Some(_) | None => {
                    self.now = self.now.max(end);
                    return;
                }
            }
        }
        let bounded = self.profile == Profile::Hardened;
        self.require(!bounded, || "deadlines without end".to_string());
    }

    /// Signs of life of every agent.
    fn signs(&mut self) {
        for rank in 0..self.ranks.len() {
            if let Some(source) = self.selected(rank) {
                self.watermark(source, 0);
            }
        }
    }

    /// Faults stop: every way is open, and every rank that is expected has one source.
    pub(crate) fn fair(&mut self, tail: &[Change]) {
        for source in 0..self.publishers.len() {
            if !self.publishers[source].up {
                self.transport(source, TransportChange::Back);
            }
            let publisher = &mut self.publishers[source];
            publisher.delayed.clear();
            // Whoever asks an agent for the whole is shown a snapshot: probation counts on it (B15).
            publisher.config.ranges = false;
        }
        self.suspect = false;
        for rank in &mut self.ranks {
            let first = rank.sources[0];
            if let Some(place) = &mut rank.place {
                place.ready = true;
                if !matches!(place.status, Status::Named(_)) {
                    place.status = Status::Named(first);
                }
            }
        }
        self.tell(true, false);
        self.settle();
        for change in tail {
            for rank in 0..self.ranks.len() {
                let Some(source) = self.selected(rank) else { continue };
                let message = self.publishers[source].publish(&[(*change, false)]);
                self.carry(source, message, Fate::Delivered);
                self.quiet();
            }
            self.wait(Micros::from_secs(2));
        }
        self.settle();
        self.check_converged();
    }

    fn settle(&mut self) {
        for _ in 0..6 {
            self.wait(Micros::from_secs(50));
            self.signs();
        }
        self.quiet();
    }

    fn check_converged(&mut self) {
        if self.profile != Profile::Hardened {
            return;
        }
        for rank in 0..self.ranks.len() {
            let Some(source) = self.selected(rank) else { continue };
            let Some(view) = self.view(rank) else {
                self.require(false, || format!("L3: nobody looks after rank {rank}"));
                continue;
            };
            self.require(view.trust >= Trust::Partial, || format!("L3: dark: {view:?}"));
            if !self.ranks[rank].target.seam {
                self.check_level(rank, source, &view);
            }
        }
    }

    /// L1 and L2 for one rank.
    fn check_level(&mut self, rank: usize, source: usize, view: &RankView) {
        let publisher = &self.publishers[source];
        let (life, config) = (publisher.life(), publisher.config);
        let (newest, truth, damaged) = (life.newest(), life.truth_now(), life.damaged);
        let target = &self.ranks[rank].target;
        let (content, flawed) = (target.content, target.flawed);
        let agent = publisher.kind() == SourceKind::Agent;
        // What an engine has denied often enough is not asked for again (B18).
        let reaches = life.events.len() <= config.window && !self.ranks[rank].lied;
        let whole = agent || (reaches && !damaged);
        let asked = config.recoverable && (agent || config.window > 0);
        if asked {
            let level = view.cursor == newest;
            self.require(level, || format!("L1: {newest:?} is the newest: {view:?}"));
        }
        if asked && whole && !flawed {
            self.require(view.trust == Trust::Exact, || format!("L1: not exact: {view:?}"));
            self.require(content == truth, || format!("L1: {content:?}, not {truth:?}: {view:?}"));
        } else if !damaged {
            self.require(content.is_within(truth), || {
                format!("L2: {content:?} above {truth:?}: {view:?}")
            });
        }
    }

    /// Every rank leaves, and nothing of it is left.
    pub(crate) fn all_gone(&mut self) {
        self.ranks.iter_mut().for_each(|rank| rank.place = None);
        // The reference tries a refused reset again only when the next snapshot comes.
        for _ in 0..3 {
            self.tell(true, false);
            self.quiet();
        }
        let (timers, permits) = (self.router.timers(), self.router.queries_in_flight());
        self.require(timers == 0, || format!("{timers} timers are left"));
        self.require(permits == 0, || format!("{permits} permits are left"));
        let ranks = self.router.ranks().count();
        self.require(ranks == 0, || format!("{ranks} ranks are left"));
        let next = self.router.next_deadline();
        self.require(next.is_none(), || format!("{next:?} is still to come"));
        let tombstones = self.router.tombstones();
        let forgets = self.policy.forget_removed;
        self.require(!forgets || tombstones == 0, || format!("B14: {tombstones} tombstones"));
        for rank in &self.ranks {
            let owed = rank.fault_replies_owed + rank.loss_replies_owed;
            if owed > 0 && self.breach.is_none() {
                self.breach = Some(format!("{owed} replies are owed of {}", rank.key));
            }
        }
    }

    /// The machine ends; every rank is emptied.
    pub(crate) fn ended(&mut self) {
        if !self.shut {
            self.shut_down();
        }
        let next = self.router.next_deadline();
        self.require(next.is_none(), || format!("{next:?} is still to come after the shutdown"));
        self.quiet();
        let permits = self.router.queries_in_flight();
        self.require(permits == 0, || format!("{permits} permits are left"));
    }
}
