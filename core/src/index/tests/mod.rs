//! Named cases; `core/tests/index_model/` covers their combinations.

mod field_reports;
mod rules;

use super::*;
use crate::event::{
    EventBatch, EventKind, EventRecord, Placement, ResidencyDomain, SkipReason, Span, SpecKind,
    Tier,
};
use crate::id::{BlockHash, LocalHash};

const A: RankKey = RankKey::new(1, 0);
const B: RankKey = RankKey::new(1, 1);

/// An index with one domain, and events in the notation of the field reports.
struct Bed {
    index: Index,
    domain: DomainId,
}

/// A store or remove of blocks, each with local hash = engine hash unless said otherwise.
#[derive(Clone)]
struct Event {
    record: EventRecord,
    hashes: Vec<u64>,
    locals: Vec<u64>,
    salt: &'static str,
    tokens: &'static str,
}

fn event(kind: EventKind, hashes: &[u64]) -> Event {
    Event {
        record: EventRecord::new(kind),
        hashes: hashes.to_vec(),
        locals: Vec::new(),
        salt: "",
        tokens: "",
    }
}

fn store(parent: Option<u64>, hashes: &[u64]) -> Event {
    let mut event = event(EventKind::Stored, hashes);
    event.record.placement = Placement::Positioned;
    event.record.parent = parent.map(BlockHash);
    event.locals = hashes.to_vec();
    event
}

fn remove(hashes: &[u64]) -> Event {
    event(EventKind::Removed, hashes)
}

fn clear() -> Event {
    event(EventKind::Cleared, &[])
}

impl Event {
    fn on(mut self, tier: Tier) -> Self {
        self.record.tier = tier;
        self
    }

    fn group(mut self, group: u32) -> Self {
        self.record.group = Some(group);
        self
    }

    fn spec(mut self, spec: SpecKind) -> Self {
        self.record.spec = Some(spec);
        self
    }

    fn owner(mut self) -> Self {
        self.record.domain = ResidencyDomain::CacheOwner;
        self
    }

    fn without_position(mut self, placement: Placement) -> Self {
        self.record.placement = placement;
        self.locals.clear();
        self
    }

    fn locals(mut self, locals: &[u64]) -> Self {
        self.locals = locals.to_vec();
        self
    }

    fn salt(mut self, salt: &'static str) -> Self {
        self.salt = salt;
        self
    }

    fn tokens(mut self, tokens: &'static str) -> Self {
        self.tokens = tokens;
        self
    }
}

fn span<T>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> Span {
    let start = u32::try_from(list.len()).unwrap();
    list.extend(more);
    Span { start, len: u32::try_from(list.len()).unwrap() - start }
}

fn encode(events: &[Event]) -> (Vec<u8>, EventBatch) {
    let (mut payload, mut batch) = (Vec::new(), EventBatch::default());
    for event in events {
        let mut record = event.record;
        record.hashes = span(&mut batch.hashes, event.hashes.iter().copied().map(BlockHash));
        record.locals = span(&mut batch.locals, event.locals.iter().copied().map(LocalHash));
        record.salt = span(&mut payload, event.salt.bytes());
        record.tokens = span(&mut payload, event.tokens.bytes());
        batch.records.push(record);
    }
    (payload, batch)
}

impl Bed {
    fn with(limits: IndexLimits, duplicates: Duplicates) -> Self {
        let mut index = Index::new(limits);
        let domain = index.open_domain();
        for rank in [A, B] {
            index.add_rank(rank, domain, SourceIdentity::default(), duplicates).unwrap();
        }
        Self { index, domain }
    }

    fn new() -> Self {
        Self::with(IndexLimits::default(), Duplicates::Counted)
    }

    fn apply(&mut self, rank: RankKey, events: &[Event]) -> Applied {
        let (payload, batch) = encode(events);
        self.index.apply(rank, EventView { payload: &payload, batch: &batch }).unwrap()
    }

    fn replace(&mut self, rank: RankKey, events: &[Event]) -> Applied {
        let (payload, batch) = encode(events);
        self.index.replace(rank, [EventView { payload: &payload, batch: &batch }]).unwrap()
    }

    /// Blocks per tier of a query by local hashes.
    fn query(&self, rank: RankKey, locals: &[u64]) -> [u32; 4] {
        let locals: Vec<LocalHash> = locals.iter().copied().map(LocalHash).collect();
        let (mut scratch, mut out) = (FindScratch::default(), Vec::new());
        self.index.find(self.domain, &locals, &mut scratch, &mut out);
        out.iter().find(|found| found.rank == rank).map_or([0; 4], |found| found.matched)
    }

    fn device(&self, rank: RankKey, locals: &[u64]) -> u32 {
        self.query(rank, locals)[0]
    }

    fn has(&self, rank: RankKey, hash: u64) -> bool {
        self.index.resident(rank, BlockHash(hash))
    }

    /// Removes everything and checks that nothing is left.
    fn end(mut self) {
        for rank in [A, B] {
            self.index.remove_rank(rank).unwrap();
        }
        let stats = self.index.stats();
        assert_eq!(
            (stats.ranks, stats.nodes, stats.entries, stats.remembered, stats.held_aside),
            (0, 0, 0, 0, 0)
        );
        assert_eq!(stats.salts, 0);
        self.index.close_domain(self.domain).unwrap();
        assert_eq!(self.index.stats().domains, 0);
    }
}
