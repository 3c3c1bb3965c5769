//! What a membership snapshot does to one rank (§5.5, §5.6, §5.7).
//!
//! With A the active binding, S the selected source, D "the stored generation differs", P "a reset is
//! owed", X "rejected in this generation", C "the target may hold what the new source must not
//! inherit" (B6, B35; never in the reference):
//!
//! | X | A | S | D, P or C | effect |
//! |---|---|---|---|---|
//! | yes | – | – | – | nothing; an owed clean-up reset is retried (B1) |
//! | no | same | some | no | nothing |
//! | no | none | none | no | accept, idle |
//! | no | none | some | no | accept, activate |
//! | no | none | any | yes | reset, accept, idle or activate |
//! | no | other, or same without S | any | no | deactivate, accept, idle or activate |
//! | no | any | any | yes | deactivate, reset, accept, idle or activate |
//!
//! A rank that is no longer expected is deactivated and, if it was active or owes a reset, emptied;
//! with B14 only if the target may hold something of it.

use super::super::command::Scope;
use super::super::follow::Follow;
use super::super::input::Payload;
use super::super::notice::{DiscardReason, ResetCause};
use super::super::shared::Context;
use super::{Binding, Content, Instance, Item, Slot, Then, Wanted};
use crate::id::{Epoch, Generation};
use crate::membership::{Source, SourceKind};

impl<P: Payload> Slot<P> {
    /// A snapshot has been applied; `None`: it does not list the rank.
    pub(in crate::router) fn want(&mut self, wanted: Option<Wanted>, cx: &mut Context<'_, P>) {
        let old = cx.wanted.and_then(Wanted::selected).map(|source| source.publisher);
        *cx.wanted = wanted;
        let new = wanted.and_then(Wanted::selected).map(|source| source.publisher);
        if let Some(publisher) = old.filter(|old| new != Some(*old)) {
            cx.shared.publishers.deselected(publisher, cx.slot);
        }
        if let Some(publisher) = new {
            // Said again even if it is the same: two ranks may have named it meanwhile.
            cx.shared.publishers.selected(publisher, cx.slot);
        }
        if new != old {
            self.lost = None;
            self.connection = self.connection.wrapping_add(1);
        }
        self.outdated = cx.shared.policy.reset_on_change
            && self.binding.is_some()
            && !wanted.is_some_and(|wanted| {
                self.stored == Some(wanted.generation) && self.follows(wanted.selected(), cx)
            });
        if self.outdated {
            self.cancel_recovery(cx);
        }
        self.accept(Item::Reconcile, cx);
    }

    /// Whether a snapshot that says the same again has something to mend.
    pub(in crate::router) fn owes_reconciliation(&self, wanted: Option<Wanted>) -> bool {
        let Some(wanted) = wanted else { return true };
        if self.is_rejected(wanted.generation) {
            return false;
        }
        self.fence.is_some()
            || self.stored != Some(wanted.generation)
            || self.binding.map(|binding| binding.source) != wanted.selected()
    }

    pub(super) fn reconcile(&mut self, cx: &mut Context<'_, P>) {
        let Some(wanted) = *cx.wanted else {
            self.remove(cx);
            return;
        };
        self.removed = false;
        let epoch = Epoch(wanted.generation.0);
        if self.is_rejected(wanted.generation) {
            if self.fence.is_some() && cx.shared.policy.self_heal {
                self.begin_reset(ResetCause::Fault, epoch, Scope::All, Then::Clean, cx);
            }
            return;
        }
        let selected = wanted.selected();
        let changed = self.stored.is_some_and(|stored| stored != wanted.generation);
        let owed = self.fence.is_some();
        if self.follows(selected, cx) && !changed && !owed {
            return;
        }
        let scope = self.scope_of(selected, cx);
        self.deactivate(cx);
        if changed || owed || self.inherits(selected, cx) {
            self.begin_reset(ResetCause::Lifecycle, epoch, scope, Then::Apply(wanted), cx);
        } else {
            self.apply(wanted, cx);
        }
    }

    /// Whether the selected source is the one that is followed. The reference asks for the publisher
    /// only; B6 for everything that was said of it, B17 for its incarnation too.
    fn follows(&self, selected: Option<Source>, cx: &Context<'_, P>) -> bool {
        let (Some(binding), Some(selected)) = (self.binding, selected) else { return false };
        let policy = &cx.shared.policy;
        let boot = if policy.check_boot { selected.boot } else { binding.source.boot };
        let selected = Source { boot, ..selected };
        selected.publisher == binding.source.publisher
            && (!policy.reset_on_change || selected == binding.source)
    }

    /// Whether the target may hold what the selected source must not inherit.
    fn inherits(&self, selected: Option<Source>, cx: &Context<'_, P>) -> bool {
        let policy = &cx.shared.policy;
        match self.content {
            Content::Empty => false,
            Content::Dirty => policy.reset_on_change,
            Content::Unknown => policy.no_dark_state && selected.is_some(),
        }
    }

    /// What a reset between two sources concerns: a lifecycle change of one agent spares what a cache
    /// owner holds, a change of publisher does not (B32); nor does an engine, whose stream says of
    /// both or of neither, or an agent that cannot be asked what its owner dropped meanwhile.
    fn scope_of(&self, selected: Option<Source>, cx: &Context<'_, P>) -> Scope {
        let same = match (self.binding, selected) {
            (Some(binding), Some(selected)) => {
                binding.source.publisher == selected.publisher
                    && selected.kind == SourceKind::Agent
                    && selected.target.is_some()
            }
            (Some(_) | None, _) => false,
        };
        let known = self.content != Content::Unknown && self.fence.is_none();
        if cx.shared.policy.split_domains && same && known { Scope::Worker } else { Scope::All }
    }

    /// Unbinds the followed source; late work of it finds nobody.
    pub(super) fn deactivate(&mut self, cx: &mut Context<'_, P>) {
        let Some(binding) = self.binding.take() else { return };
        self.outdated = false;
        cx.shared.publishers.left(binding.source.publisher, cx.slot);
        self.quiesce(DiscardReason::Fenced, cx);
    }

    /// The old state is gone, or none of this source's concern: takes the snapshot's word over. A source
    /// that a newer snapshot no longer wants is not begun with (B6).
    pub(super) fn apply(&mut self, wanted: Wanted, cx: &mut Context<'_, P>) {
        if self.stored != Some(wanted.generation) {
            self.healed();
        }
        self.stored = Some(wanted.generation);
        self.lift_fence(cx);
        self.forgive(cx);
        self.start_fresh(cx);
        self.follow.replay_blind = false;
        self.follow.replay_mute = false;
        let superseded = cx.shared.policy.reset_on_change && *cx.wanted != Some(wanted);
        let selected = wanted.selected().filter(|_| !superseded);
        if let Some(source) = selected {
            self.activate(source, wanted.generation, cx);
        }
    }

    pub(super) fn activate(
        &mut self,
        source: Source,
        generation: Generation,
        cx: &mut Context<'_, P>,
    ) {
        self.instances += 1;
        let instance = Instance(self.instances);
        self.binding = Some(Binding { source, epoch: Epoch(generation.0), instance });
        self.boot = source.boot;
        self.next_seq = None;
        cx.shared.publishers.followed(source.publisher, cx.slot);
        if !self.is_lost() {
            self.begin_following(cx);
        }
    }

    /// The rank is no longer expected, or the machine ends.
    pub(super) fn remove(&mut self, cx: &mut Context<'_, P>) {
        if self.removed {
            return;
        }
        let occupied = if cx.shared.policy.forget_removed {
            self.content == Content::Dirty
        } else {
            self.binding.is_some()
        };
        let owed = occupied || self.fence.is_some();
        self.deactivate(cx);
        if owed {
            let epoch = Epoch(self.stored.map_or(0, |stored| stored.0));
            self.begin_reset(ResetCause::Lifecycle, epoch, Scope::All, Then::Remove, cx);
        } else {
            self.removed(cx);
        }
    }

    /// Nothing of the rank is left; its generation stays as a tombstone, unless a return is reset
    /// anyhow (B14).
    pub(super) fn removed(&mut self, cx: &mut Context<'_, P>) {
        self.removed = true;
        self.lift_fence(cx);
        self.forgive(cx);
        self.lost = None;
        self.start_fresh(cx);
        if cx.shared.policy.forget_removed {
            self.stored = None;
        }
    }

    /// Forgets the life that was followed, not what was learned of the replay behind it.
    pub(super) fn start_fresh(&mut self, cx: &mut Context<'_, P>) {
        self.quiesce(DiscardReason::OldLife, cx);
        let (replay_blind, replay_mute) = (self.follow.replay_blind, self.follow.replay_mute);
        self.follow = Follow::fresh(cx.now);
        self.follow.replay_blind = replay_blind;
        self.follow.replay_mute = replay_mute;
    }
}
