//! Index domains and their dense numbers.

use core::num::NonZeroU32;
use kvmirror_core::id::WorkerId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What rows must share to be comparable (`http-api` rule 7): no answer crosses it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainKey {
    /// Model name.
    pub model: String,
    /// Tenant, `default` when none was given.
    pub tenant: String,
    /// Additional salt of the registration; empty = none.
    pub salt: String,
    /// Tokens per block.
    pub block_size: NonZeroU32,
    /// Whether tokens are hashed in pairs.
    pub eagle: bool,
    /// Placeholder token of images.
    pub image_token_id: Option<u32>,
    /// Placeholder token of videos.
    pub video_token_id: Option<u32>,
}

/// A dense number of an open domain. The lowest free number is given out, so a number may name
/// another domain after [`DomainEvent::Closed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u32);

/// A change that whoever keeps an index per domain must follow, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DomainEvent {
    /// The first registration of a domain.
    Opened(DomainId, Arc<DomainKey>),
    /// Its last registration is gone.
    Closed(DomainId),
}

#[derive(Debug)]
struct Open {
    key: Arc<DomainKey>,
    registrations: u32,
    workers: BTreeSet<WorkerId>,
}

/// The open domains. Its size is bounded by the registrations that hold them open.
#[derive(Debug, Default)]
pub(super) struct DomainTable {
    slots: Vec<Option<Open>>,
    free: BTreeSet<u32>,
    ids: BTreeMap<Arc<DomainKey>, DomainId>,
    by_model: BTreeMap<String, BTreeMap<String, BTreeSet<DomainId>>>,
}

impl DomainTable {
    /// Adds one registration of `worker`. A registry's limit keeps the count within `u32`.
    pub(super) fn hold(
        &mut self,
        key: DomainKey,
        worker: WorkerId,
    ) -> (DomainId, Option<DomainEvent>) {
        if let Some(&id) = self.ids.get(&key) {
            if let Some(open) = self.slot(id) {
                open.registrations += 1;
                open.workers.insert(worker);
            }
            return (id, None);
        }
        let key = Arc::new(key);
        let id = self.open(Open {
            key: Arc::clone(&key),
            registrations: 1,
            workers: BTreeSet::from([worker]),
        });
        self.by_model
            .entry(key.model.clone())
            .or_default()
            .entry(key.tenant.clone())
            .or_default()
            .insert(id);
        self.ids.insert(Arc::clone(&key), id);
        (id, Some(DomainEvent::Opened(id, key)))
    }

    /// Takes one registration away; `worker_gone` when it was that worker's last.
    pub(super) fn release(
        &mut self,
        id: DomainId,
        worker: WorkerId,
        worker_gone: bool,
    ) -> Option<DomainEvent> {
        let open = self.slot(id)?;
        open.registrations -= 1;
        if worker_gone {
            open.workers.remove(&worker);
        }
        if open.registrations > 0 {
            return None;
        }
        let key = Arc::clone(&open.key);
        self.close(id, &key);
        Some(DomainEvent::Closed(id))
    }

    pub(super) fn key(&self, id: DomainId) -> Option<&Arc<DomainKey>> {
        self.at(id).map(|open| &open.key)
    }

    pub(super) fn workers(&self, id: DomainId) -> impl Iterator<Item = WorkerId> + '_ {
        self.at(id).into_iter().flat_map(|open| open.workers.iter().copied())
    }

    /// The open domains of one model and tenant, ascending.
    pub(super) fn of(&self, model: &str, tenant: &str) -> impl Iterator<Item = DomainId> + '_ {
        self.by_model
            .get(model)
            .and_then(|tenants| tenants.get(tenant))
            .into_iter()
            .flat_map(|ids| ids.iter().copied())
    }

    fn open(&mut self, open: Open) -> DomainId {
        if let Some(number) = self.free.pop_first() {
            self.slots[number as usize] = Some(open);
            return DomainId(number);
        }
        let number = u32::try_from(self.slots.len())
            .expect("there are no more domains than registrations, whose limit is a u32");
        self.slots.push(Some(open));
        DomainId(number)
    }

    fn close(&mut self, id: DomainId, key: &DomainKey) {
        self.slots[id.0 as usize] = None;
        self.free.insert(id.0);
        self.ids.remove(key);
        if let Some(tenants) = self.by_model.get_mut(&key.model) {
            if let Some(ids) = tenants.get_mut(&key.tenant) {
                ids.remove(&id);
                if ids.is_empty() {
                    tenants.remove(&key.tenant);
                }
            }
            if tenants.is_empty() {
                self.by_model.remove(&key.model);
            }
        }
    }

    fn at(&self, id: DomainId) -> Option<&Open> {
        self.slots.get(id.0 as usize).and_then(Option::as_ref)
    }

    fn slot(&mut self, id: DomainId) -> Option<&mut Open> {
        self.slots.get_mut(id.0 as usize).and_then(Option::as_mut)
    }
}
