//! Rules of the index, one by one.

use super::*;
use std::vec;

#[test]
fn a_removed_middle_hides_what_is_below_until_it_returns() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1, 2, 3, 4]), remove(&[2])]);
    assert_eq!(bed.device(A, &[1, 2, 3, 4]), 1);
    let below = bed.apply(A, &[store(Some(2), &[5])]);
    assert_eq!((below.orphans, below.remembered_parents, below.held_aside), (1, 1, 0));
    bed.apply(A, &[store(Some(1), &[2])]);
    assert_eq!((bed.device(A, &[1, 2, 3, 4]), bed.device(A, &[1, 2, 5])), (4, 3));
    // Also when the store that fills the hole says nothing of its place.
    bed.apply(A, &[remove(&[2]), store(None, &[2]).without_position(Placement::TokenLess)]);
    assert_eq!(bed.device(A, &[1, 2, 3, 4]), 4);
    bed.end();
}

#[test]
fn a_position_is_forgotten_with_the_last_block_below() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1, 2, 3]), remove(&[1, 2])]);
    assert_eq!(bed.index.stats().remembered, 2);
    // Another rank's blocks keep nothing for this one.
    bed.apply(B, &[store(None, &[1, 2, 3, 4])]);
    bed.apply(A, &[remove(&[3])]);
    assert_eq!((bed.index.stats().remembered, bed.index.stats().nodes), (0, 4));
    assert_eq!(bed.apply(A, &[store(Some(2), &[3])]).held_aside, 1);
    bed.end();
}

#[test]
fn a_freed_child_makes_room_for_another() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1, 2]), store(Some(1), &[3])]);
    bed.apply(A, &[remove(&[2])]);
    bed.apply(A, &[store(Some(1), &[4]), store(Some(1), &[2])]);
    for child in [2, 3, 4] {
        assert_eq!(bed.device(A, &[1, child]), 2);
    }
    bed.apply(A, &[remove(&[4, 3, 2])]);
    assert_eq!(bed.index.stats().nodes, 1);
    bed.apply(B, &[store(None, &[1, 2])]);
    assert_eq!((bed.device(A, &[1, 2]), bed.device(B, &[1, 2])), (1, 2));
    bed.end();
}

#[test]
fn a_removed_duplicate_leaves_the_block_and_its_position() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1, 2]), store(None, &[1, 2]), store(None, &[1])]);
    bed.apply(A, &[remove(&[1, 2])]);
    assert_eq!(bed.device(A, &[1, 2]), 2);
    bed.apply(A, &[remove(&[1, 2])]);
    assert_eq!(bed.device(A, &[1, 2]), 1);
    bed.apply(A, &[remove(&[1])]);
    assert_eq!(bed.index.stats().nodes, 0);
    bed.end();
}

#[test]
fn orphans_get_their_place_with_their_parent() {
    let mut bed = Bed::new();
    let applied = bed.apply(A, &[store(Some(2), &[3, 4]), store(Some(4), &[5])]);
    assert_eq!((applied.orphans, applied.held_aside), (1, 3));
    assert_eq!(bed.index.find_engine(A, &[3, 4, 5].map(BlockHash)), [3, 0, 0, 0]);
    bed.apply(A, &[remove(&[5])]);
    assert_eq!(bed.index.stats().held_aside, 2);
    assert_eq!(bed.apply(A, &[store(None, &[1, 2])]).adopted, 2);
    assert_eq!(bed.device(A, &[1, 2, 3, 4, 5]), 4);
    bed.end();
}

#[test]
fn a_very_long_orphan_chain_is_placed_without_recursion() {
    let mut bed = Bed::new();
    let chain: Vec<u64> = (2..60_002).collect();
    assert_eq!(bed.apply(A, &[store(Some(1), &chain)]).held_aside, 60_000);
    assert_eq!(bed.apply(A, &[store(None, &[1])]).adopted, 60_000);
    assert_eq!(bed.device(A, &(1..60_002).collect::<Vec<_>>()), 60_001);
    bed.apply(A, &[remove(&chain[..59_999])]);
    assert_eq!(bed.index.stats().remembered, 59_999);
    bed.apply(A, &[remove(&[60_001])]);
    assert_eq!((bed.index.stats().remembered, bed.index.stats().nodes), (0, 1));
    bed.end();
}

#[test]
fn held_aside_is_bounded_and_says_so() {
    let limits = IndexLimits { held_aside_blocks: 2, ..IndexLimits::default() };
    let mut bed = Bed::with(limits, Duplicates::Counted);
    let applied = bed.apply(A, &[store(Some(1), &[2, 3, 4])]);
    assert_eq!((applied.stored, applied.held_aside, applied.not_held), (3, 2, 1));
    bed.apply(A, &[store(None, &[1])]);
    assert_eq!(bed.device(A, &[1, 2, 3, 4]), 3);
    assert!(bed.has(A, 4));
    bed.end();
}

#[test]
fn the_cap_refuses_and_counts() {
    let limits = IndexLimits { entries: Some(3), ..IndexLimits::default() };
    let mut bed = Bed::with(limits, Duplicates::Counted);
    let applied = bed.apply(A, &[store(None, &[1, 2, 3, 4, 5])]);
    assert_eq!((applied.stored, applied.capacity), (3, 2));
    assert_eq!(bed.apply(A, &[store(None, &[1])]).duplicates, 1);
    assert_eq!(bed.apply(B, &[store(None, &[1])]).capacity, 1);
    // A rank can be replaced by as much as it has.
    let applied = bed.replace(A, &[store(None, &[6, 7, 8, 9])]);
    assert_eq!((applied.stored, applied.capacity), (3, 1));
    bed.apply(A, &[remove(&[8])]);
    assert_eq!(bed.apply(B, &[store(None, &[1])]).stored, 1);
    bed.end();
}

#[test]
fn one_hash_at_two_places_is_ambiguous_until_gone() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1, 2, 3])]);
    let applied = bed.apply(A, &[store(None, &[2]).locals(&[77])]);
    assert_eq!((applied.duplicates, applied.conflicts), (1, 1));
    assert_eq!((bed.device(A, &[77]), bed.device(A, &[1, 2, 3])), (0, 1));
    assert!(bed.has(A, 2));
    // Nothing is hung below it either.
    assert_eq!(bed.apply(A, &[store(Some(2), &[8])]).conflicts, 1);
    bed.apply(A, &[remove(&[2]), remove(&[2]), store(Some(1), &[2])]);
    assert_eq!(bed.device(A, &[1, 2, 3]), 3);
    bed.end();
}

#[test]
fn equal_sequence_hashes_of_different_places_are_told_apart() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1, 2])]);
    let deep = crate::hash::next_sequence_hash(Some(crate::id::SequenceHash(1)), LocalHash(2));
    // A first block whose sequence hash is that of block 2.
    let applied = bed.apply(B, &[store(None, &[9, 10]).locals(&[deep.0, 5])]);
    assert_eq!((applied.stored, applied.conflicts), (2, 2));
    assert_eq!((bed.device(A, &[deep.0]), bed.device(B, &[deep.0])), (0, 0));
    assert_eq!(bed.device(A, &[1, 2]), 2);
    bed.end();
}

#[test]
fn a_chain_inherits_its_salt() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1]).salt("tenant"), store(Some(1), &[2]), store(Some(2), &[3])]);
    assert_eq!((bed.device(A, &[1, 2, 3]), bed.index.stats().salts), (3, 1));
    // The same block in another namespace is at another place.
    let applied = bed.apply(A, &[store(None, &[1]).salt("other").locals(&[50])]);
    assert_eq!(applied.conflicts, 1);
    bed.apply(A, &[clear()]);
    assert_eq!(bed.index.stats().salts, 0);
    bed.end();
}

#[test]
fn an_orphan_whose_salt_comes_too_late_stays_without_position() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(Some(1), &[2]).tokens("tokens"), store(Some(1), &[3]).salt("tenant")]);
    let applied = bed.apply(A, &[store(None, &[1]).salt("tenant")]);
    assert_eq!((applied.adopted, applied.unsalted), (1, 1));
    assert_eq!((bed.device(A, &[1, 2]), bed.device(A, &[1, 3])), (1, 2));
    assert!(bed.has(A, 2));
    bed.end();
}

#[test]
fn a_salt_beyond_the_limit_gives_no_position() {
    let limits = IndexLimits { salt_bytes: 3, ..IndexLimits::default() };
    let mut bed = Bed::with(limits, Duplicates::Counted);
    assert_eq!(bed.apply(A, &[store(None, &[1]).salt("long")]).long_salts, 1);
    assert!(bed.has(A, 1));
    assert_eq!(bed.device(A, &[1]), 0);
    bed.end();
}

#[test]
fn domains_of_residency_are_cleared_apart() {
    let mut bed = Bed::new();
    let both = [store(None, &[1, 2]), store(None, &[1]).on(Tier::Host).owner()];
    bed.apply(A, &both);
    bed.apply(A, &[clear()]);
    assert_eq!(bed.query(A, &[1, 2]), [0, 1, 0, 0]);
    bed.apply(A, &both);
    bed.apply(A, &[clear().owner()]);
    assert_eq!(bed.query(A, &[1, 2]), [2, 0, 0, 0]);
    bed.apply(A, &both);
    bed.index.reset(A, ResetScope::Worker).unwrap();
    assert_eq!(bed.index.counts(A), [0, 1, 0, 0]);
    bed.index.reset(A, ResetScope::CacheOwner).unwrap();
    assert_eq!(bed.index.counts(A), [0; 4]);
    bed.end();
}

#[test]
fn the_walk_never_goes_back_up() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1]).on(Tier::Host), store(Some(1), &[2])]);
    bed.apply(A, &[store(Some(2), &[3]).on(Tier::Host)]);
    assert_eq!(bed.query(A, &[1, 2, 3]), [0, 1, 0, 0]);
    bed.apply(A, &[store(Some(1), &[2]).on(Tier::External), store(Some(2), &[3]).on(Tier::Disk)]);
    assert_eq!(bed.query(A, &[1, 2, 3]), [0, 1, 0, 1]);
    bed.end();
}

#[test]
fn only_main_attention_groups_decide() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1, 2]).group(3)]);
    assert_eq!(bed.device(A, &[1, 2]), 0, "an unknown group other than 0 decides nothing");
    bed.apply(A, &[store(None, &[1]).group(3).spec(SpecKind::MainAttention)]);
    assert_eq!(bed.device(A, &[1, 2]), 2, "what is learned holds for what is resident");
    bed.apply(A, &[store(None, &[1]).group(0)]);
    assert_eq!(bed.device(A, &[1, 2]), 1, "all deciding groups of the tier must hold a block");
    bed.apply(A, &[store(None, &[]).group(0).spec(SpecKind::Other)]);
    assert_eq!(bed.device(A, &[1, 2]), 2);
    bed.apply(A, &[remove(&[1]).group(3), remove(&[1]).group(3)]);
    assert_eq!(bed.device(A, &[1, 2]), 0);
    assert!(bed.has(A, 1), "still in group 0");
    bed.end();
}

#[test]
fn too_many_groups_are_refused_and_counted() {
    let mut bed = Bed::new();
    for group in 0..64 {
        assert_eq!(bed.apply(A, &[store(None, &[1]).group(group)]).stored, 1);
    }
    assert_eq!(bed.apply(A, &[store(None, &[1]).group(64)]).over_groups, 1);
    assert_eq!(bed.index.blocks(A).len(), 64);
    bed.index.reset(A, ResetScope::All).unwrap();
    assert_eq!(bed.apply(A, &[store(None, &[1]).group(64)]).stored, 1);
    bed.end();
}

#[test]
fn two_hashes_of_one_place_are_both_held() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1]), store(None, &[9]).locals(&[1])]);
    bed.apply(A, &[store(Some(1), &[2]), store(Some(9), &[3])]);
    bed.apply(A, &[remove(&[1])]);
    assert_eq!((bed.device(A, &[1, 2]), bed.device(A, &[1, 3])), (2, 2));
    bed.apply(A, &[remove(&[9])]);
    assert_eq!(bed.device(A, &[1, 2]), 0);
    bed.end();
}

#[test]
fn domains_do_not_see_each_other() {
    let mut bed = Bed::new();
    let other = bed.index.open_domain();
    let stranger = RankKey::new(7, 0);
    bed.index.add_rank(stranger, other, SourceIdentity::default(), Duplicates::Counted).unwrap();
    bed.apply(A, &[store(None, &[1, 2])]);
    bed.apply(stranger, &[store(None, &[1])]);
    assert_eq!((bed.device(A, &[1]), bed.device(stranger, &[1])), (1, 0));
    bed.index.close_domain(other).unwrap();
    assert!(bed.index.close_domain(other).is_err());
    let late =
        bed.index.add_rank(RankKey::new(8, 0), other, SourceIdentity::default(), Duplicates::Set);
    assert_eq!(late, Err(IndexError::UnknownDomain { domain: other }));
    bed.index.remove_rank(stranger).unwrap();
    let again = bed.index.open_domain();
    assert_ne!(again, other);
    let (mut scratch, mut out) = (FindScratch::default(), Vec::new());
    bed.index.find(other, &[LocalHash(1)], &mut scratch, &mut out);
    assert!(out.is_empty());
    bed.index.close_domain(again).unwrap();
    bed.end();
}

#[test]
fn callers_errors_change_nothing() {
    let mut bed = Bed::new();
    let nobody = RankKey::new(5, 5);
    let (domain, batch) = (bed.domain, EventBatch::default());
    let view = EventView { payload: &[], batch: &batch };
    let unknown = IndexError::UnknownRank { rank: nobody };
    assert_eq!(bed.index.apply(nobody, view), Err(unknown));
    assert_eq!(bed.index.replace(nobody, vec![view]), Err(unknown));
    assert_eq!(bed.index.reset(nobody, ResetScope::All), Err(unknown));
    assert_eq!(bed.index.remove_rank(nobody), Err(unknown));
    assert_eq!(
        bed.index.add_rank(A, domain, SourceIdentity::default(), Duplicates::Set),
        Err(IndexError::RankExists { rank: A })
    );
    bed.end();
}

#[test]
fn answers_are_in_order_of_rank() {
    let mut bed = Bed::new();
    let early = RankKey::new(0, 3);
    let domain = bed.domain;
    bed.index.add_rank(early, domain, SourceIdentity::default(), Duplicates::Counted).unwrap();
    for (rank, blocks) in [(B, 3), (early, 1), (A, 2)] {
        bed.apply(rank, &[store(None, &[1, 2, 3][..blocks])]);
    }
    let (mut scratch, mut out) = (FindScratch::default(), Vec::new());
    bed.index.find(domain, &[1, 2, 3, 4].map(LocalHash), &mut scratch, &mut out);
    let found: Vec<_> = out.iter().map(|found| (found.rank, found.total())).collect();
    assert_eq!(found, [(early, 1), (A, 2), (B, 3)]);
    bed.index.remove_rank(early).unwrap();
    bed.end();
}

#[test]
fn replace_swaps_the_whole_rank() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1, 2]), store(None, &[3]).owner()]);
    bed.apply(B, &[store(None, &[1, 2])]);
    let applied = bed.replace(A, &[store(None, &[1]), store(Some(9), &[10])]);
    assert_eq!((applied.stored, applied.first_orphan), (2, Some(1)));
    assert_eq!((bed.device(A, &[1, 2]), bed.device(B, &[1, 2])), (1, 2));
    assert!(!bed.has(A, 3));
    assert_eq!(bed.index.stats().ranks, 2);
    bed.end();
}
