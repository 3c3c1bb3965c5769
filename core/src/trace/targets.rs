//! Names of recovery targets.

use crate::id::TargetId;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Ids of named targets begin here; below are those that a recording names by number.
const NAMED: u64 = 1 << 63;

/// The target names of one trace, numbered in order of appearance.
///
/// `#7` is the target with the id 7: so a recording names its targets, and replays them under the
/// very ids they had.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    ids: BTreeMap<String, u64>,
    names: Vec<String>,
}

impl Targets {
    /// The id of `name`; a new name gets a new one.
    pub(super) fn id(&mut self, name: &str) -> TargetId {
        if let Some(number) = numbered(name) {
            return TargetId(number);
        }
        let next = NAMED.saturating_add(self.names.len() as u64);
        let id = *self.ids.entry(name.to_owned()).or_insert_with(|| {
            self.names.push(name.to_owned());
            next
        });
        TargetId(id)
    }

    /// The name of `id`.
    pub(super) fn name(&self, id: TargetId) -> String {
        let index = id.0.checked_sub(NAMED).and_then(|index| usize::try_from(index).ok());
        index
            .and_then(|index| self.names.get(index).cloned())
            .unwrap_or_else(|| format!("#{}", id.0))
    }
}

fn numbered(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('#')?;
    let number = digits.parse().ok().filter(|number| *number < NAMED)?;
    // One spelling only: another one is a name like any other.
    (format!("{number}") == digits).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_come_back() {
        let mut targets = Targets::default();
        let a = targets.id("a");
        for name in ["a", "b", "#7", "#07", "#9223372036854775808", "#", ""] {
            let id = targets.id(name);
            assert_eq!(targets.name(id), name);
            assert_eq!(targets.id(name), id);
        }
        assert_eq!(targets.id("a"), a);
        assert_eq!(targets.id("#7"), TargetId(7));
        assert_ne!(targets.id("#07"), TargetId(7));
    }
}
