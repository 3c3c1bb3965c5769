//! What labels stand for.

use super::feed::unbound;
use super::number::IdRef;
use super::output::Output;
use crate::id::RankKey;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// Labels of one sort of ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    ids: BTreeMap<String, u64>,
    labels: BTreeMap<u64, String>,
}

impl Labels {
    fn get(&self, id: &IdRef) -> Option<u64> {
        match id {
            IdRef::Number(number) => Some(*number),
            IdRef::Label(label) => self.ids.get(label).copied(),
        }
    }

    /// Makes `id` stand for `number`, or says why it does not. With `shared`, several labels may
    /// stand for one number.
    pub(super) fn bind(&mut self, id: &IdRef, number: u64, shared: bool) -> Result<(), String> {
        let label = match id {
            IdRef::Number(expected) if *expected == number => return Ok(()),
            IdRef::Number(expected) => return Err(format!("is {number}, expected {expected}")),
            IdRef::Label(label) => label,
        };
        match (self.ids.get(label), self.labels.get(&number)) {
            (Some(bound), _) if *bound == number => Ok(()),
            (Some(bound), _) => Err(format!("is {number}, but {label:?} stands for {bound}")),
            (None, Some(other)) if !shared => {
                Err(format!("is {number}, for which {other:?} stands, not {label:?}"))
            }
            (None, _) => {
                self.ids.insert(label.clone(), number);
                self.labels.entry(number).or_insert_with(|| label.clone());
                Ok(())
            }
        }
    }

    /// Writes the label instead of a number that has one.
    fn name(&self, id: &mut IdRef) {
        let label = match id {
            IdRef::Number(number) => self.labels.get(number),
            IdRef::Label(_) => None,
        };
        if let Some(label) = label {
            *id = IdRef::Label(label.to_owned());
        }
    }
}

/// Labels of one trace, and the rank of each query. Grows with the number of queries of the trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    pub(super) ops: Labels,
    pub(super) queries: Labels,
    ranks: BTreeMap<u64, RankKey>,
}

impl Bindings {
    /// The number of an input's `op`.
    pub(super) fn op(&self, id: &IdRef) -> Result<u64, String> {
        self.ops.get(id).ok_or_else(|| unbound("op", id))
    }

    /// The number of an input's `query`.
    pub(super) fn query(&self, id: &IdRef) -> Result<u64, String> {
        self.queries.get(id).ok_or_else(|| unbound("query", id))
    }

    /// The rank of a query that was sent.
    pub(super) fn rank_of(&self, id: &IdRef) -> Option<RankKey> {
        self.ranks.get(&self.queries.get(id)?).copied()
    }

    /// Remembers whose query an output sends.
    pub(super) fn emitted(&mut self, output: &Output) {
        if let (Some(IdRef::Number(query)), Some(rank)) = (output.query(), output.rank()) {
            self.ranks.insert(*query, rank);
        }
    }

    /// The output with labels instead of the numbers that have one.
    pub(super) fn named(&self, output: &Output) -> Output {
        let mut output = output.clone();
        let (op, query) = output.ids_mut();
        if let Some(Some(op)) = op {
            self.ops.name(op);
        }
        if let Some(query) = query {
            self.queries.name(query);
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(text: &str) -> IdRef {
        IdRef::Label(text.to_owned())
    }

    #[test]
    fn the_first_use_binds_and_later_ones_must_agree() {
        let mut labels = Labels::default();
        assert_eq!(labels.get(&label("q1")), None);
        assert_eq!(labels.bind(&label("q1"), 5, false), Ok(()));
        assert_eq!(labels.get(&label("q1")), Some(5));
        assert_eq!(labels.bind(&label("q1"), 5, false), Ok(()));
        assert!(labels.bind(&label("q1"), 6, false).is_err());
    }

    #[test]
    fn two_labels_are_two_numbers_unless_shared() {
        let mut labels = Labels::default();
        assert_eq!(labels.bind(&label("a"), 5, false), Ok(()));
        assert!(labels.bind(&label("b"), 5, false).is_err());
        assert_eq!(labels.bind(&label("b"), 5, true), Ok(()));
        assert_eq!(labels.get(&label("b")), Some(5));
    }

    #[test]
    fn numbers_are_exact() {
        let mut labels = Labels::default();
        assert_eq!(labels.bind(&IdRef::Number(7), 7, false), Ok(()));
        assert!(labels.bind(&IdRef::Number(7), 8, false).is_err());
        assert_eq!(labels.get(&IdRef::Number(9)), Some(9));
    }
}
