//! Index domains: the walls between answers (B19).

use super::node::NodeId;
use super::salt::Salts;
use alloc::vec::Vec;
use core::fmt;
use hashbrown::HashTable;

/// An index domain. What it stands for (model, tenant, additional salt, block size, hashing
/// options) is the host's business; no answer crosses it.
///
/// The handle of a closed domain names nothing again, also when its place is taken by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId {
    index: u32,
    life: u32,
}

impl fmt::Display for DomainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.life)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Takes ranks.
    Open,
    /// Takes no more ranks, answers for those it has, and is gone with the last one.
    Closing,
    /// Names nothing.
    Free,
}

/// The positions and salts of one domain.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    state: State,
    life: u32,
    ranks: usize,
    /// Every node of the domain, by sequence hash.
    pub(super) nodes: HashTable<NodeId>,
    pub(super) salts: Salts,
}

/// All domains. Invariant: a free one has no rank, and therefore neither node nor salt.
#[derive(Clone, Debug, Default)]
pub(super) struct Domains {
    slots: Vec<Domain>,
    free: Vec<u32>,
}

impl Domains {
    pub(super) fn open(&mut self) -> DomainId {
        if let Some(index) = self.free.pop() {
            let domain = &mut self.slots[index as usize];
            domain.state = State::Open;
            domain.life += 1;
            return DomainId { index, life: domain.life };
        }
        let index = u32::try_from(self.slots.len()).expect("a host opens few domains at a time");
        self.slots.push(Domain {
            state: State::Open,
            life: 0,
            ranks: 0,
            nodes: HashTable::new(),
            salts: Salts::default(),
        });
        DomainId { index, life: 0 }
    }

    /// Whether `id` was open.
    pub(super) fn close(&mut self, id: DomainId) -> bool {
        if !self.is_open(id) {
            return false;
        }
        self.slots[id.index as usize].state = State::Closing;
        self.retire_if_empty(id);
        true
    }

    /// Whether ranks can be added to `id`.
    pub(super) fn is_open(&self, id: DomainId) -> bool {
        self.get(id).is_some_and(|domain| domain.state == State::Open)
    }

    pub(super) fn add_rank(&mut self, id: DomainId) {
        self.slots[id.index as usize].ranks += 1;
    }

    /// A rank whose blocks are gone leaves `id`.
    pub(super) fn drop_rank(&mut self, id: DomainId) {
        self.slots[id.index as usize].ranks -= 1;
        self.retire_if_empty(id);
    }

    fn retire_if_empty(&mut self, id: DomainId) {
        let domain = &mut self.slots[id.index as usize];
        match domain.state {
            State::Closing if domain.ranks == 0 => {
                domain.state = State::Free;
                domain.nodes = HashTable::new();
                domain.salts = Salts::default();
                // A place whose lives are used up is not taken again.
                if domain.life < u32::MAX {
                    self.free.push(id.index);
                }
            }
            State::Open | State::Closing | State::Free => {}
        }
    }

    /// The domain `id` names, open or closing.
    pub(super) fn get(&self, id: DomainId) -> Option<&Domain> {
        let domain = self.slots.get(id.index as usize)?;
        match domain.state {
            State::Open | State::Closing if domain.life == id.life => Some(domain),
            State::Open | State::Closing | State::Free => None,
        }
    }

    /// The domain of a rank that is in the index.
    pub(super) fn of_rank(&mut self, id: DomainId) -> &mut Domain {
        &mut self.slots[id.index as usize]
    }

    /// Domains that are open or closing, with their contents.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Domain> {
        self.slots.iter().filter(|domain| match domain.state {
            State::Open | State::Closing => true,
            State::Free => false,
        })
    }
}
