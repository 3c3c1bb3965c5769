//! Failures reported in the field, each by its number.

use super::*;

#[test]
fn p14_all_cleared_empties_the_rank_and_what_it_knew() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1]).salt("x"), store(Some(1), &[2])]);
    assert_eq!(bed.apply(A, &[clear()]).cleared, 2);
    assert_eq!(bed.device(A, &[1]), 0);
    assert_eq!(bed.index.stats().salts, 0);
    let applied = bed.apply(A, &[store(Some(1), &[3])]);
    assert_eq!((applied.orphans, applied.first_orphan, applied.held_aside), (1, Some(0), 1));
    bed.end();
}

#[test]
fn p16_phantom_clears_do_nothing() {
    let mut bed = Bed::new();
    for hash in 0..5_000 {
        bed.apply(A, &[clear(), store(None, &[hash]), remove(&[hash])]);
        assert_eq!(bed.apply(A, &[clear()]), Applied::default());
    }
    bed.end();
}

#[test]
fn p17_clear_leaves_siblings_alone() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1])]);
    bed.apply(B, &[store(None, &[1])]);
    bed.apply(A, &[clear()]);
    assert_eq!((bed.device(A, &[1]), bed.device(B, &[1])), (0, 1));
    bed.end();
}

#[test]
fn p24_hash_forms_are_one_number() {
    let mut bed = Bed::new();
    let minus_one = u64::from_ne_bytes((-1_i64).to_ne_bytes());
    bed.apply(A, &[store(None, &[minus_one]).locals(&[7])]);
    assert!(bed.has(A, u64::MAX));
    assert_eq!(bed.apply(A, &[remove(&[u64::MAX])]).removed, 1);
    assert!(!bed.has(A, u64::MAX));
    bed.end();
}

#[test]
fn p26_p27_stores_that_do_not_fit_are_resident_without_position() {
    let mut bed = Bed::new();
    for (placement, hash) in Placement::UNPLACED.into_iter().zip(10..) {
        let applied = bed.apply(A, &[store(None, &[hash]).without_position(placement)]);
        assert_eq!((applied.stored, applied.unplaced_for(placement)), (1, 1));
        assert!(bed.has(A, hash));
        assert_eq!(bed.query(A, &[hash]), [0; 4]);
        assert_eq!(bed.index.find_engine(A, &[BlockHash(hash)]), [1, 0, 0, 0]);
        assert_eq!(bed.apply(A, &[remove(&[hash])]).removed, 1);
    }
    let short = bed.apply(A, &[store(None, &[1, 2]).locals(&[1])]);
    assert_eq!(short.unplaced_for(Placement::TokenCountMismatch), 2);
    assert_eq!(bed.query(A, &[1]), [0; 4]);
    bed.end();
}

#[test]
fn p28_token_less_lower_tier_takes_the_known_position() {
    let mut bed = Bed::new();
    let token_less = |hash| store(None, &[hash]).without_position(Placement::TokenLess);
    bed.apply(A, &[store(None, &[1]), token_less(1).on(Tier::Host), remove(&[1])]);
    assert_eq!(bed.query(A, &[1]), [0, 1, 0, 0]);
    bed.apply(A, &[token_less(9).on(Tier::Host)]);
    assert_eq!(bed.query(A, &[9]), [0; 4]);
    assert!(bed.has(A, 9));
    // Once some store says where 9 is, its copy in host memory is there too.
    bed.apply(A, &[store(None, &[9]), remove(&[9])]);
    assert_eq!(bed.query(A, &[9]), [0, 1, 0, 0]);
    bed.end();
}

#[test]
fn p29_removal_is_of_one_tier() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1]), store(None, &[1]).on(Tier::Host), remove(&[1])]);
    assert_eq!(bed.query(A, &[1]), [0, 1, 0, 0]);
    let mut unknown = remove(&[1]);
    unknown.record.skip = Some(SkipReason::UnknownMedium);
    let applied = bed.apply(A, &[unknown]);
    assert_eq!(applied.skipped_for(SkipReason::UnknownMedium), 1);
    assert_eq!(bed.query(A, &[1]), [0, 1, 0, 0]);
    bed.end();
}

#[test]
fn p30_duplicates_are_counted_or_a_set() {
    for (duplicates, after_first) in [(Duplicates::Counted, 1), (Duplicates::Set, 0)] {
        let mut bed = Bed::with(IndexLimits::default(), duplicates);
        let twice = bed.apply(A, &[store(None, &[1]), store(None, &[1])]);
        assert_eq!((twice.stored, twice.duplicates), (1, 1));
        assert_eq!(bed.apply(A, &[remove(&[1])]).removed, 1);
        assert_eq!(bed.device(A, &[1]), after_first);
        let second = bed.apply(A, &[remove(&[1])]);
        assert_eq!(second.removed + second.unknown_removed, 1);
        assert_eq!(bed.device(A, &[1]), 0);
        // A snapshot starts the counts afresh.
        bed.apply(A, &[store(None, &[1]), store(None, &[1])]);
        bed.replace(A, &[store(None, &[1])]);
        bed.apply(A, &[remove(&[1])]);
        assert_eq!(bed.device(A, &[1]), 0);
        bed.end();
    }
}

#[test]
fn p32_a_wrong_parent_neither_crashes_nor_attaches() {
    let mut bed = Bed::new();
    bed.apply(A, &[store(None, &[1]), store(None, &[3])]);
    assert_eq!(bed.device(A, &[1, 2, 3]), 1);
    bed.apply(A, &[store(Some(1), &[2])]);
    assert_eq!(bed.device(A, &[1, 2, 3]), 2);
    assert_eq!(bed.apply(A, &[remove(&[3])]).removed, 1);
    bed.end();
}

#[test]
fn p34_short_lived_branches_leave_nothing() {
    let mut bed = Bed::new();
    let chain: Vec<u64> = (1..=1_024).collect();
    bed.apply(A, &[store(None, &chain)]);
    let mut before = bed.index.stats();
    for worker in 0..1_000_u64 {
        let rank = RankKey::new(100 + worker, 0);
        let domain = bed.domain;
        bed.index.add_rank(rank, domain, SourceIdentity::default(), Duplicates::Counted).unwrap();
        let depth = usize::try_from(worker).unwrap() + 1;
        let branch = [10_000 + worker, 20_000 + worker];
        bed.apply(rank, &[store(None, &chain[..depth]), store(Some(depth as u64), &branch)]);
        bed.index.remove_rank(rank).unwrap();
        if worker == 0 {
            // The first one may make tables grow that then have room for all others.
            before.bytes = bed.index.stats().bytes;
        }
    }
    let after = bed.index.stats();
    assert_eq!((after.nodes, after.entries), (before.nodes, before.entries));
    assert!(after.bytes <= before.bytes + before.bytes / 10, "{after:?} was {before:?}");
    bed.end();
}
