//! Which sources the loop follows: registering and unregistering them.

use super::run::Running;
use crate::backend::BackendError;
use crate::registry::{
    DomainEvent, RankFacts, Registered, Registration, Unregistered, Unregistration,
};
use crate::source::{SourceConfig, spawn_source};
use crate::transport::Transport;
use kvmirror_core::id::{EventId, RankKey, TargetId};
use kvmirror_core::mirror::SourceFacts;

impl<T: Transport> Running<T> {
    pub(super) fn register(
        &mut self,
        registration: Registration,
    ) -> Result<Registered, BackendError> {
        let endpoint = registration.endpoint.clone();
        let registered = self.registry.register(registration)?;
        if !registered.new {
            return Ok(registered);
        }
        if let Some(DomainEvent::Opened(id, _)) = &registered.opened {
            let domain = self.mirror.open_domain();
            self.domains.insert(*id, domain);
        }
        let rank = RankKey { worker: registered.worker, rank: registered.rank };
        let facts = self.registry.rank(rank).map(|facts| self.source_facts(facts));
        let facts = facts.flatten().ok_or_else(|| internal("a registered rank has its domain"))?;
        let publisher = facts.publisher;
        let recoverable = facts.target.is_some();
        self.mirror.add_source(facts, self.now()).map_err(internal)?;
        let mut subscribe = self.options.subscribe.clone();
        if let Some(facts) = self.registry.rank(rank) {
            subscribe.topic.clone_from(&facts.registration.topic);
        }
        if !recoverable {
            // Building a quiet socket anew would be a discontinuity that nothing can bridge.
            subscribe.silence = None;
        }
        let config = SourceConfig { source: publisher.0, endpoint, subscribe };
        let task = spawn_source(&self.transport, config, self.events.clone());
        self.ranks.add(rank, publisher, task);
        tracing::info!(%rank, %publisher, "following");
        Ok(registered)
    }

    fn source_facts(&self, facts: &RankFacts) -> Option<SourceFacts> {
        let registration = &facts.registration;
        Some(SourceFacts {
            rank: facts.key(),
            publisher: facts.publisher,
            domain: *self.domains.get(&facts.domain)?,
            identity: registration.identity(),
            duplicates: registration.duplicates,
            target: registration.replay_endpoint.as_ref().map(|_| TargetId(facts.publisher.0)),
            first_id: EventId(0),
        })
    }

    pub(super) fn unregister(
        &mut self,
        wish: &Unregistration,
    ) -> Result<Unregistered, BackendError> {
        let gone = self.registry.unregister(wish)?;
        for facts in &gone.removed {
            let rank = facts.key();
            if let Some(counts) = self.mirror.counts(rank) {
                self.retired += *counts;
            }
            if let Some(followed) = self.ranks.remove(rank) {
                self.retired_overflow += followed.task.counters().overflow();
            }
            self.mirror.remove_source(rank, self.now()).map_err(internal)?;
            tracing::info!(%rank, publisher = %facts.publisher, "no longer following");
        }
        if let Some(DomainEvent::Closed(id)) = &gone.closed
            && let Some(domain) = self.domains.remove(id)
        {
            self.mirror.close_domain(domain).map_err(internal)?;
        }
        Ok(gone)
    }
}

fn internal(error: impl ToString) -> BackendError {
    BackendError::Internal(error.to_string())
}
