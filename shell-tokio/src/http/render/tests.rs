//! The identities that hold for any answer (`http-api` §9).

use super::*;
use core::num::NonZeroU32;
use kvmirror_core::id::Rank;
use proptest::prelude::*;

fn any_rank(rank: u32) -> impl Strategy<Value = RankAnswer> {
    let matched = proptest::option::weighted(0.8, [0u32..20, 0u32..20, 0u32..20, 0u32..20]);
    let cursor = proptest::option::of(any::<u64>());
    (0..Trust::ALL.len(), matched, cursor).prop_map(move |(trust, matched, cursor)| RankAnswer {
        rank: Rank(rank),
        trust: Trust::ALL[trust],
        reason: Some(TrustReason::Gap),
        cursor,
        age_ms: None,
        matched,
    })
}

fn any_instance() -> impl Strategy<Value = InstanceAnswer> {
    let ranks = (any_rank(0), any_rank(1), any_rank(11)).prop_map(|(a, b, c)| vec![a, b, c]);
    (1u32..2_000, ranks).prop_map(|(size, ranks)| InstanceAnswer {
        name: InstanceName::integer(7),
        block_size: NonZeroU32::new(size).unwrap(),
        ranks,
    })
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

fn check(instance: &InstanceAnswer, min_trust: Trust) {
    let rendered =
        answer(&QueryAnswer { known: true, instances: vec![instance.clone()] }, min_trust);
    let row = &rendered["instances"]["7"];
    let size = number(&row["block_size"]);
    let mut best = [0; 3];
    let mut answering = Vec::new();
    for rank in &instance.ranks {
        let key = rank.rank.to_string();
        let shown = &row["ranks"][&key];
        assert_eq!(shown["trust"], rank.trust.name());
        assert_eq!(shown.get("reason").is_some(), rank.trust != Trust::Exact);
        let Some(blocks) = shown.get("matched_blocks") else {
            assert!(
                rank.trust < min_trust || !rank.trust.answers() || rank.matched.is_none(),
                "a rank that may answer must"
            );
            let most = if rank.trust == Trust::Exact { 1 } else { 2 };
            assert_eq!(shown.as_object().unwrap().len(), most, "trust and reason only");
            assert!(row["dp"].get(&key).is_none() && row["rank_matches"].get(&key).is_none());
            assert!(rendered["scores"]["7"].get(&key).is_none());
            continue;
        };
        assert!(rank.trust >= min_trust && rank.trust.answers());
        let [d, h, k, x] = ["device", "host", "disk", "external"].map(|t| number(&blocks[t]));
        let matches = &row["rank_matches"][&key];
        assert_eq!(number(&row["dp"][&key]), d * size);
        assert_eq!(number(&matches["gpu"]), d * size);
        assert_eq!(number(&matches["cpu"]), (d + h) * size);
        assert_eq!(number(&matches["disk"]), (d + h + k + x) * size);
        let score = rendered["scores"]["7"].get(&key).map(number);
        assert_eq!(score, (d > 0).then_some(d * size));
        for (best, name) in best.iter_mut().zip(["gpu", "cpu", "disk"]) {
            *best = number(&matches[name]).max(*best);
        }
        answering.push(key);
    }
    assert_eq!(["gpu", "cpu", "disk"].map(|name| number(&row[name])), best);
    assert_eq!(row["longest_matched"], row["disk"]);
    for map in ["dp", "rank_matches"] {
        assert_eq!(row[map].as_object().unwrap().len(), answering.len(), "{map}");
    }
    assert_eq!(rendered["frequencies"], json!([]));
}

proptest! {
    #[test]
    fn the_identities_of_any_answer_hold(instance in any_instance(), level in 3usize..7) {
        check(&instance, Trust::ALL[level]);
    }
}

#[test]
fn the_largest_numbers_do_not_wrap() {
    let instance = InstanceAnswer {
        name: InstanceName::text("a"),
        block_size: NonZeroU32::MAX,
        ranks: vec![RankAnswer {
            rank: Rank(0),
            trust: Trust::Exact,
            reason: None,
            cursor: Some(u64::MAX),
            age_ms: Some(0),
            matched: Some([u32::MAX; 4]),
        }],
    };
    let rendered = answer(&QueryAnswer { known: true, instances: vec![instance] }, Trust::Suspect);
    assert_eq!(rendered["instances"]["a"]["disk"], json!(u64::MAX));
    assert_eq!(rendered["instances"]["a"]["ranks"]["0"]["cursor"], json!(u64::MAX));
}
