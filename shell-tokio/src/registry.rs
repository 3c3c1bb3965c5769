//! The registry of sources: which ranks are followed, under which names, in which index domains.
//!
//! Pure and synchronous: no IO, no clock; fresh publisher ids come from an injected generator. It
//! holds the rules of `http-api` §2 and §3 that do not depend on how a call was spelled:
//!
//! * an instance is a name within a tenant; it has one domain and any number of ranks, each with
//!   its own endpoint (no rank offset is ever added to a port);
//! * a repeat with equal facts changes nothing; with other facts it is a conflict, never "last
//!   writer wins" (P22 of the field reports);
//! * a rank that was never registered does not exist: it is not created by what a message says of
//!   itself, and removing an instance removes every rank of it (P21);
//! * a domain lives as long as a registration of it.
//!
//! Everything it lists is in ascending order.

mod domain;
mod error;
mod facts;
#[cfg(test)]
mod model;
mod name;
mod publishers;
#[cfg(test)]
mod tests;

pub use domain::{DomainEvent, DomainId, DomainKey};
pub use error::RegistryError;
pub use facts::{
    DEFAULT_TENANT, EngineKind, ParsedKind, RankFacts, Registered, Registration, Unregistered,
    Unregistration, WorkerFilter, duplicates_name, parse_duplicates,
};
pub use name::InstanceName;

use core::fmt;
use core::num::NonZeroU32;
use domain::DomainTable;
use kvmirror_core::id::{Rank, RankKey, WorkerId};
use publishers::Publishers;
use std::collections::BTreeMap;

/// Numbers for instances whose name is no free number are given out from here upwards, away from
/// the small numbers that names are likely to be, and exact in every JSON reader for the next
/// 8 · 10¹⁵ of them.
pub const FIRST_ASSIGNED_WORKER: u64 = 1 << 48;

/// Bounds of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryLimits {
    /// Registered ranks, all instances together. Beyond: [`RegistryError::Full`].
    pub registrations: u32,
    /// Bytes of an instance, model, tenant, salt, adapter or topic text. Beyond:
    /// [`RegistryError::Invalid`].
    pub name_bytes: usize,
}

impl Default for RegistryLimits {
    fn default() -> Self {
        Self { registrations: 65_536, name_bytes: 512 }
    }
}

#[derive(Debug)]
struct Instance {
    ranks: BTreeMap<Rank, RankFacts>,
}

/// The registered ranks.
pub struct Registry {
    limits: RegistryLimits,
    publishers: Publishers,
    workers: BTreeMap<WorkerId, Instance>,
    /// Name → tenant → number.
    names: BTreeMap<String, BTreeMap<String, WorkerId>>,
    domains: DomainTable,
    registrations: u32,
    next_worker: u64,
}

impl Registry {
    /// An empty registry. `generator` is asked for the randomness of publisher ids: any `u64`s, of
    /// which 53 bits are kept so that the ids survive every JSON reader; what it repeats is skipped.
    pub fn new(
        limits: RegistryLimits,
        generator: impl FnMut() -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self {
            limits,
            publishers: Publishers::new(Box::new(generator)),
            workers: BTreeMap::new(),
            names: BTreeMap::new(),
            domains: DomainTable::default(),
            registrations: 0,
            next_worker: FIRST_ASSIGNED_WORKER,
        }
    }

    /// Registers one rank (`http-api` §2). A repeat of equal facts gives what the first one gave,
    /// with `new` false.
    ///
    /// # Errors
    /// [`RegistryError::Invalid`] for an empty or over-long text; [`RegistryError::RankConflict`]
    /// when the rank is registered with other facts; [`RegistryError::DomainConflict`] when the
    /// instance is in another domain; [`RegistryError::Full`] at the limit;
    /// [`RegistryError::NoPublisherId`] when the generator only repeats itself. Nothing has
    /// changed after an error.
    pub fn register(&mut self, registration: Registration) -> Result<Registered, RegistryError> {
        self.check_texts(&registration)?;
        let existing = self.find(registration.instance.as_str(), &registration.tenant);
        if let Some(worker) = existing
            && let Some(repeat) = self.compare(worker, &registration)?
        {
            return Ok(repeat);
        }
        if self.registrations >= self.limits.registrations {
            return Err(RegistryError::Full { limit: self.limits.registrations });
        }
        let publisher = self.publishers.fresh().ok_or(RegistryError::NoPublisherId)?;
        let worker = existing.unwrap_or_else(|| self.assign_worker(&registration));
        let (domain, opened) = self.domains.hold(registration.domain(), worker);
        let rank = registration.rank;
        self.registrations += 1;
        self.workers
            .entry(worker)
            .or_insert_with(|| Instance { ranks: BTreeMap::new() })
            .ranks
            .insert(rank, RankFacts { worker, publisher, domain, registration });
        Ok(Registered { new: true, worker, rank, publisher, domain, opened })
    }

    /// Removes one rank or every rank of an instance (`http-api` §3).
    ///
    /// # Errors
    /// [`RegistryError::NotFound`] for an unknown instance or rank, another model or tenant;
    /// [`RegistryError::SeveralTenants`] when no tenant is given and there is not exactly one.
    /// Nothing has changed after an error.
    pub fn unregister(&mut self, wish: &Unregistration) -> Result<Unregistered, RegistryError> {
        let not_found =
            || RegistryError::NotFound { instance: wish.instance.clone(), rank: wish.rank };
        let worker = self.addressed(wish)?.ok_or_else(not_found)?;
        let instance = self.workers.get_mut(&worker).ok_or_else(not_found)?;
        let model_matches = |facts: &RankFacts| {
            wish.model.as_ref().is_none_or(|model| *model == facts.registration.model)
        };
        if !instance.ranks.values().all(model_matches) {
            return Err(not_found());
        }
        let removed: Vec<RankFacts> = match wish.rank {
            Some(rank) => vec![instance.ranks.remove(&rank).ok_or_else(not_found)?],
            None => core::mem::take(&mut instance.ranks).into_values().collect(),
        };
        let worker_gone = instance.ranks.is_empty();
        let mut closed = None;
        for (index, facts) in removed.iter().enumerate() {
            self.registrations -= 1;
            self.publishers.retire(facts.publisher);
            let last = worker_gone && index + 1 == removed.len();
            if let Some(event) = self.domains.release(facts.domain, worker, last) {
                closed = Some(event);
            }
        }
        if worker_gone {
            self.workers.remove(&worker);
            self.forget_name(&removed);
        }
        Ok(Unregistered { removed, closed })
    }

    /// The facts of one rank.
    pub fn rank(&self, key: RankKey) -> Option<&RankFacts> {
        self.workers.get(&key.worker).and_then(|instance| instance.ranks.get(&key.rank))
    }

    /// The number of an instance.
    pub fn worker(&self, name: &InstanceName, tenant: &str) -> Option<WorkerId> {
        self.find(name.as_str(), tenant)
    }

    /// Every registered rank, by worker, then rank.
    pub fn ranks(&self) -> impl Iterator<Item = &RankFacts> {
        self.workers.values().flat_map(|instance| instance.ranks.values())
    }

    /// The ranks of one worker, ascending.
    pub fn ranks_of(&self, worker: WorkerId) -> impl Iterator<Item = &RankFacts> {
        self.workers.get(&worker).into_iter().flat_map(|instance| instance.ranks.values())
    }

    /// The workers that `filter` selects, ascending; each has at least one rank.
    pub fn workers(&self, filter: &WorkerFilter) -> impl Iterator<Item = WorkerId> {
        self.workers.iter().filter_map(|(worker, instance)| {
            let first = &instance.ranks.first_key_value()?.1.registration;
            let selected = filter.model.as_ref().is_none_or(|model| *model == first.model)
                && filter.tenant.as_ref().is_none_or(|tenant| *tenant == first.tenant);
            selected.then_some(*worker)
        })
    }

    /// The ranks in one domain, by worker, then rank.
    pub fn in_domain(&self, domain: DomainId) -> impl Iterator<Item = &RankFacts> {
        self.domains.workers(domain).flat_map(|worker| self.ranks_of(worker))
    }

    /// The key of an open domain.
    pub fn domain(&self, domain: DomainId) -> Option<&DomainKey> {
        self.domains.key(domain).map(AsRef::as_ref)
    }

    /// Whether a model and tenant have a registration (`http-api` §4).
    pub fn is_known(&self, model: &str, tenant: &str) -> bool {
        self.domains.of(model, tenant).next().is_some()
    }

    /// The domains a query selects (`http-api` rule 7), ascending: model and tenant exactly, block
    /// size and salt when given.
    pub fn matching(
        &self,
        model: &str,
        tenant: &str,
        block_size: Option<NonZeroU32>,
        salt: Option<&str>,
    ) -> impl Iterator<Item = DomainId> {
        self.domains.of(model, tenant).filter(move |id| {
            self.domain(*id).is_some_and(|key| {
                block_size.is_none_or(|size| size == key.block_size)
                    && salt.is_none_or(|salt| salt == key.salt)
            })
        })
    }

    /// How many ranks are registered.
    pub const fn len(&self) -> u32 {
        self.registrations
    }

    /// Whether no rank is registered.
    pub const fn is_empty(&self) -> bool {
        self.registrations == 0
    }

    fn find(&self, name: &str, tenant: &str) -> Option<WorkerId> {
        self.names.get(name).and_then(|tenants| tenants.get(tenant)).copied()
    }

    fn addressed(&self, wish: &Unregistration) -> Result<Option<WorkerId>, RegistryError> {
        if let Some(tenant) = &wish.tenant {
            return Ok(self.find(wish.instance.as_str(), tenant));
        }
        let Some(tenants) = self.names.get(wish.instance.as_str()) else { return Ok(None) };
        if tenants.len() > 1 {
            return Err(RegistryError::SeveralTenants {
                instance: wish.instance.clone(),
                tenants: tenants.len(),
            });
        }
        Ok(tenants.values().next().copied())
    }

    /// `Some` when `registration` repeats what is registered, `None` when its rank is new.
    fn compare(
        &self,
        worker: WorkerId,
        registration: &Registration,
    ) -> Result<Option<Registered>, RegistryError> {
        if let Some(facts) = self.rank(RankKey { worker, rank: registration.rank }) {
            return match error::difference(&facts.registration, registration) {
                Some(field) => Err(RegistryError::RankConflict {
                    instance: registration.instance.clone(),
                    rank: registration.rank,
                    field,
                }),
                None => Ok(Some(Registered {
                    new: false,
                    worker,
                    rank: registration.rank,
                    publisher: facts.publisher,
                    domain: facts.domain,
                    opened: None,
                })),
            };
        }
        let sibling = self.ranks_of(worker).next();
        match sibling.and_then(|facts| error::domain_difference(&facts.registration, registration))
        {
            Some(field) => Err(RegistryError::DomainConflict {
                instance: registration.instance.clone(),
                tenant: registration.tenant.clone(),
                field,
            }),
            None => Ok(None),
        }
    }

    fn check_texts(&self, registration: &Registration) -> Result<(), RegistryError> {
        let texts = [
            ("instance_id", registration.instance.as_str(), true),
            ("model_name", registration.model.as_str(), true),
            ("tenant_id", registration.tenant.as_str(), true),
            ("additional_salt", registration.salt.as_str(), false),
            ("lora_name", registration.lora.as_str(), false),
            ("topic", registration.topic.as_str(), false),
        ];
        for (field, text, required) in texts {
            if required && text.is_empty() {
                return Err(RegistryError::Invalid { field, problem: "must not be empty" });
            }
            if text.len() > self.limits.name_bytes {
                return Err(RegistryError::Invalid { field, problem: "is too long" });
            }
        }
        Ok(())
    }

    /// The name's own number when it is one and free, else the next number that is free.
    fn assign_worker(&mut self, registration: &Registration) -> WorkerId {
        let own = registration.instance.number().map(WorkerId);
        let worker = own.filter(|own| !self.workers.contains_key(own)).unwrap_or_else(|| {
            while self.workers.contains_key(&WorkerId(self.next_worker)) {
                self.next_worker += 1;
            }
            let assigned = WorkerId(self.next_worker);
            self.next_worker += 1;
            assigned
        });
        self.names
            .entry(registration.instance.as_str().to_owned())
            .or_default()
            .insert(registration.tenant.clone(), worker);
        worker
    }

    fn forget_name(&mut self, removed: &[RankFacts]) {
        let Some(facts) = removed.first() else { return };
        let name = facts.registration.instance.as_str();
        if let Some(tenants) = self.names.get_mut(name) {
            tenants.remove(&facts.registration.tenant);
            if tenants.is_empty() {
                self.names.remove(name);
            }
        }
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("limits", &self.limits)
            .field("workers", &self.workers)
            .field("registrations", &self.registrations)
            .finish_non_exhaustive()
    }
}
