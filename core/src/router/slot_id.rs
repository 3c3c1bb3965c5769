//! Which slot: named by ops and queries, so that what comes back finds its rank without a search.

use core::num::NonZeroU32;

/// Bits of an op or a query that name its slot.
const BITS: u32 = 24;

/// A slot's place in the machine's slab, counted from one: an absent one takes no more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SlotId(NonZeroU32);

impl SlotId {
    /// The slot at an index; `None` at and above 2²⁴ − 1, which no op could name.
    pub(super) fn at(index: usize) -> Option<Self> {
        let place = u32::try_from(index).ok()?.checked_add(1)?;
        NonZeroU32::new(place).filter(|place| place.get() < 1 << BITS).map(Self)
    }

    pub(super) const fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// A number that names the slot. After 2⁴⁰ of them they come round again; only what comes back
    /// that late could be mistaken.
    pub(super) const fn number(self, count: u64) -> u64 {
        (count << BITS) | self.0.get() as u64
    }

    /// The slot that a number was made for; `None` for one that no slot has made.
    pub(super) fn of(number: u64) -> Option<Self> {
        u32::try_from(number & ((1 << BITS) - 1)).ok().and_then(NonZeroU32::new).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_its_slot() {
        for index in [0, 1, 65_535, (1 << 24) - 2] {
            let slot = SlotId::at(index).unwrap();
            for count in [0, 1, (1 << 40) - 1, u64::MAX] {
                assert_eq!(SlotId::of(slot.number(count)).unwrap().index(), index);
            }
            assert_ne!(slot.number(1), slot.number(2));
        }
        assert_eq!(SlotId::at((1 << 24) - 1), None);
        assert_eq!(SlotId::at(usize::MAX), None);
        assert_eq!(SlotId::of(5 << 24), None);
    }
}
