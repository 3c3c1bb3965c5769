//! Fresh publisher ids.

use core::fmt;
use kvmirror_core::id::PublisherId;
use std::collections::{BTreeSet, VecDeque};

/// Integers up to this many bits survive every JSON reader.
const BITS: u32 = 53;
/// Retired ids that are remembered. What is older cannot come back but by a chance of one in 2⁵³.
const REMEMBERED: usize = 65_536;
/// Draws before a generator is given up as broken.
const DRAWS: u32 = 64;

/// Draws ids from a generator; none is given twice while it, or its retirement, is remembered. The
/// live ones are bounded by the registry's limit, the retired ones by [`REMEMBERED`].
pub(super) struct Publishers {
    generator: Box<dyn FnMut() -> u64 + Send + Sync>,
    known: BTreeSet<PublisherId>,
    retired: VecDeque<PublisherId>,
}

impl Publishers {
    pub(super) fn new(generator: Box<dyn FnMut() -> u64 + Send + Sync>) -> Self {
        Self { generator, known: BTreeSet::new(), retired: VecDeque::new() }
    }

    /// A fresh id; never 0. `None` when the generator only repeats itself.
    pub(super) fn fresh(&mut self) -> Option<PublisherId> {
        for _ in 0..DRAWS {
            let id = PublisherId((self.generator)() & ((1 << BITS) - 1));
            if id.0 != 0 && self.known.insert(id) {
                return Some(id);
            }
        }
        None
    }

    pub(super) fn retire(&mut self, id: PublisherId) {
        self.retired.push_back(id);
        if self.retired.len() > REMEMBERED
            && let Some(oldest) = self.retired.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl fmt::Debug for Publishers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publishers").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_json_and_are_never_given_twice() {
        let mut script = [0, 5, 5, u64::MAX, (1 << 53) | 5, 6].into_iter();
        let mut publishers = Publishers::new(Box::new(move || script.next().unwrap_or(9)));
        assert_eq!(publishers.fresh(), Some(PublisherId(5)));
        assert_eq!(publishers.fresh(), Some(PublisherId((1 << 53) - 1)));
        publishers.retire(PublisherId(5));
        assert_eq!(publishers.fresh(), Some(PublisherId(6)), "5 is retired, not free");
        assert_eq!(publishers.fresh(), Some(PublisherId(9)));
        assert_eq!(publishers.fresh(), None, "a generator stuck at 9 is given up");
    }
}
