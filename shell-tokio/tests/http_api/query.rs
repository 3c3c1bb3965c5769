//! `/query` and `/query_by_hash`.

use crate::client::{Client, assert_superset};
use crate::example::{ENGINE, Example, LOCALS, SEQUENCES};
use core::num::NonZeroU32;
use kvmirror_core::hash::{BASE_SEED, local_hashes, sequence_hashes};
use kvmirror_core::id::{BlockHash, LocalHash, SequenceHash};
use kvmirror_core::router::{Trust, TrustReason};
use kvmirror_tokio::backend::Prompt;
use kvmirror_tokio::http::HttpOptions;
use serde_json::{Value, json};

const D_QUERY: &str =
    r#"{"model_name":"m","token_ids":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}"#;
const D_ANSWER: &str = r#"{"frequencies":[],"instances":{"7":{"cpu":12,"disk":16,"dp":{"0":8,"1":4},"gpu":8,"longest_matched":16}},"scores":{"7":{"0":8,"1":4}}}"#;
const M_QUERY: &str = r#"{"model":"m","block_size":4,"token_ids":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],"tenant_id":"default","lora_name":"","cache_salt":null}"#;
const M_ANSWER: &str = r#"{"instances":{"7":{"longest_matched":16,"gpu":8,"dp":{"0":8,"1":4},"cpu":12,"disk":16,"rank_matches":{"0":{"gpu":8,"cpu":12,"disk":16},"1":{"gpu":4,"cpu":4,"disk":4}}}}}"#;
const OUR_ANSWER: &str = r#"{"instances":{"7":{"longest_matched":16,"gpu":8,"cpu":12,"disk":16,"dp":{"0":8,"1":4},
  "rank_matches":{"0":{"gpu":8,"cpu":12,"disk":16},"1":{"gpu":4,"cpu":4,"disk":4}},"block_size":4,
  "ranks":{"0":{"trust":"exact","cursor":41,"age_ms":120,"matched_blocks":{"device":2,"host":1,"disk":1,"external":0}},
           "1":{"trust":"partial","reason":"history_unknown","cursor":12,"age_ms":80,"matched_blocks":{"device":1,"host":0,"disk":0,"external":0}}}}},
 "scores":{"7":{"0":8,"1":4}},"frequencies":[]}"#;
const D_BY_HASH: &str = r#"{"model_name":"m","block_hashes":[9143094415614847814,-6322652565496669421,1088361764653601668,-2421763097180574668]}"#;
const M_BY_HASH: &str = r#"{"model":"m","block_size":4,"seq_hashes":[9143094415614847814,9510318385840434533,16998148715716822651,16790386768269814709]}"#;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn the_literal_queries_get_one_answer_that_contains_both() {
    let client = Client::new();
    for (path, request) in [
        ("/query", D_QUERY),
        ("/query", M_QUERY),
        ("/query_by_hash", D_BY_HASH),
        ("/query_by_hash", M_BY_HASH),
    ] {
        let answer = client.post(path, request).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (200, parsed(OUR_ANSWER)), "{request}");
        assert_superset(&answer.json(), &parsed(D_ANSWER));
        assert_superset(&answer.json(), &parsed(M_ANSWER));
    }
}

#[tokio::test]
async fn rows_without_a_hit_are_listed_but_not_scored() {
    let client = Client::new();
    for body in [r#"{"model_name":"m","token_ids":[]}"#, r#"{"model":"m","token_ids":[9,9,9,9]}"#] {
        let answer = client.post("/query", body).await.json();
        let row = &answer["instances"]["7"];
        assert_eq!((&row["longest_matched"], &row["gpu"]), (&json!(0), &json!(0)));
        assert_eq!(row["dp"], json!({ "0": 0, "1": 0 }));
        assert_eq!(row["rank_matches"]["1"], json!({ "gpu": 0, "cpu": 0, "disk": 0 }));
        assert_eq!(answer["scores"], json!({}));
    }
}

#[tokio::test]
async fn an_unknown_model_or_tenant_is_answered_by_spelling() {
    let client = Client::new();
    for (path, d, m, model, tenant) in [
        (
            "/query",
            r#"{"model_name":"x","token_ids":[]}"#,
            r#"{"model":"x","token_ids":[]}"#,
            "x",
            "default",
        ),
        (
            "/query_by_hash",
            r#"{"model_name":"m","block_hashes":[],"routing_group":"t"}"#,
            r#"{"model":"m","seq_hashes":[],"tenant_id":"t"}"#,
            "m",
            "t",
        ),
    ] {
        let answer = client.post(path, d).await;
        assert_eq!(answer.status, 404);
        let error = format!("no indexer for model={model} routing_group={tenant}");
        assert_superset(&answer.json(), &json!({ "error": error, "reason": "not_found" }));
        let answer = client.post(path, m).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["instances"]), (200, &json!({})));
    }
}

#[tokio::test]
async fn selectors_select_and_a_mismatch_is_no_rows() {
    let client = Client::new();
    for (extra, rows) in [
        (json!({}), 1),
        (json!({ "block_size": 4 }), 1),
        (json!({ "block_size": 8 }), 0),
        (json!({ "additional_salt": "" }), 1),
        (json!({ "additionalsalt": "s" }), 0),
        (json!({ "instance_id": 7 }), 1),
        (json!({ "instance_id": "7" }), 1),
        (json!({ "instance_id": "007" }), 0),
        (json!({ "instance_id": "engine-a" }), 0),
        (json!({ "tenant_id": "" }), 1),
        (json!({ "lora_id": -1, "medium": "GPU" }), 1),
        (json!({ "lora_id": null }), 1),
    ] {
        for model in ["model", "model_name"] {
            let mut body = json!({ model: "m", "token_ids": [0, 1, 2, 3] });
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let answer = client.post("/query", body.to_string()).await;
            assert_eq!(answer.status, 200, "{body}");
            assert_eq!(answer.json()["instances"].as_object().unwrap().len(), rows, "{body}");
        }
    }
}

#[tokio::test]
async fn everything_a_query_says_reaches_the_backend() {
    let client = Client::new();
    let body = r#"{"modelname":"m","routing_group":"default","block_size":4,"additional_salt":"s","instance_id":7,
        "lora_name":"l","cache_salt":"c","min_trust":"catching_up","token_ids":[-1,-2147483648,4294967295,0]}"#;
    client.post("/query", body).await;
    let seen = client.backend.seen();
    assert_eq!((seen.model.as_str(), seen.tenant.as_str()), ("m", "default"));
    assert_eq!((seen.block_size, seen.salt.as_deref()), (NonZeroU32::new(4), Some("s")));
    assert_eq!(seen.instance.unwrap().as_str(), "7");
    assert_eq!(seen.min_trust, Trust::CatchingUp);
    let ids = vec![u32::MAX, 1 << 31, u32::MAX, 0];
    assert_eq!(seen.prompt, Prompt::Tokens { ids, lora: "l".into(), salt: "c".into() });
}

#[tokio::test]
async fn hashes_come_as_numbers_or_text_and_mean_what_their_field_says() {
    let client = Client::new();
    let spelled = r#"[1,-1,18446744073709551615,-9223372036854775808,"7","-1","0xff","0XFFFFFFFFFFFFFFFF","18446744073709551615"]"#;
    let bits = [1, u64::MAX, u64::MAX, 1 << 63, 7, u64::MAX, 255, u64::MAX, u64::MAX];
    let local = Prompt::Local(bits.map(LocalHash).to_vec());
    let sequence = Prompt::Sequence(bits.map(SequenceHash).to_vec());
    let engine = Prompt::Engine(bits.map(BlockHash).to_vec());
    for (field, rest, prompt) in [
        ("block_hashes", "", &local),
        ("seq_hashes", "", &sequence),
        ("block_hash", "", &sequence),
        ("seq_hashes", r#","hashes":"local""#, &local),
        ("block_hashes", r#","hashes":"sequence""#, &sequence),
        ("block_hashes", r#","hashes":"engine","instance_id":7"#, &engine),
        (
            "block_hashes",
            r#","lora_name":"","cache_salt":null,"hashes":null,"seq_hashes":null"#,
            &local,
        ),
    ] {
        let body = format!(r#"{{"model":"m","{field}":{spelled}{rest}}}"#);
        let answer = client.post("/query_by_hash", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(client.backend.seen().prompt, *prompt, "{field} {rest}");
    }
    let both = r#"{"model":"m","seq_hashes":[1,255],"block_hash":["1","0xff"]}"#;
    assert_eq!(client.post("/query_by_hash", both).await.status, 200, "aliases with equal values");
}

#[tokio::test]
async fn engine_hashes_are_matched_within_one_instance() {
    let body =
        json!({ "model": "m", "block_hashes": ENGINE, "hashes": "engine", "instance_id": 7 });
    let answer = Client::new().post("/query_by_hash", body.to_string()).await;
    assert_eq!(answer.json()["instances"]["7"]["longest_matched"], json!(16));
}

#[test]
fn the_hashes_of_the_description_are_those_of_the_tokens() {
    let tokens: Vec<u32> = (0..17).collect();
    let (mut locals, mut sequence) = (Vec::new(), Vec::new());
    local_hashes(&tokens, 4, false, BASE_SEED, &mut locals);
    sequence_hashes(&locals, &mut sequence);
    assert_eq!(locals, LOCALS.map(LocalHash));
    assert_eq!(sequence, SEQUENCES.map(SequenceHash));
}

#[tokio::test]
async fn a_list_of_one_is_equal_in_both() {
    assert_eq!(LOCALS[0], SEQUENCES[0]);
    let client = Client::new();
    let local = json!({ "model": "m", "block_hashes": [LOCALS[0]] }).to_string();
    let rolling = json!({ "model": "m", "seq_hashes": [SEQUENCES[0]] }).to_string();
    let answer = client.post("/query_by_hash", local).await.json();
    assert_eq!(answer, client.post("/query_by_hash", rolling).await.json());
    assert_eq!(answer["scores"], json!({ "7": { "0": 4, "1": 4 } }));
}

#[tokio::test]
async fn ranks_below_the_asked_trust_show_their_trust_only() {
    let partial = json!({ "trust": "partial", "reason": "history_unknown" });
    for (level, answers) in
        [("suspect", true), ("partial", true), ("catching_up", false), ("exact", false)]
    {
        let mut body = parsed(D_QUERY);
        body["min_trust"] = json!(level);
        let answer = Client::new().post("/query", body.to_string()).await.json();
        let row = &answer["instances"]["7"];
        assert_eq!(row["longest_matched"], json!(16));
        assert_eq!(row["dp"].get("1").is_some(), answers, "{level}");
        assert_eq!(row["rank_matches"].get("1").is_some(), answers);
        assert_eq!(answer["scores"]["7"].get("1").is_some(), answers);
        assert_eq!(row["ranks"]["1"] == partial, !answers);
    }
    for trust in [Trust::Fenced, Trust::Ambiguous, Trust::Missing] {
        let example = Example::running().second_rank(trust, TrustReason::Resetting);
        let answer = Client::over(example).post("/query", D_QUERY).await.json();
        let row = &answer["instances"]["7"];
        assert_eq!(row["ranks"]["1"], json!({ "trust": trust.name(), "reason": "resetting" }));
        assert_eq!(row["dp"], json!({ "0": 8 }));
    }
}

#[tokio::test]
async fn an_instance_without_an_answering_rank_keeps_its_row() {
    let example = Example::running().second_rank(Trust::Fenced, TrustReason::Resetting);
    let client = Client::over(example);
    client.post("/unregister", r#"{"instance_id":7,"dp_rank":0}"#).await;
    let answer = client.post("/query", D_QUERY).await.json();
    let expected = json!({
        "instances": { "7": {
            "longest_matched": 0, "gpu": 0, "cpu": 0, "disk": 0, "dp": {}, "rank_matches": {},
            "block_size": 4, "ranks": { "1": { "trust": "fenced", "reason": "resetting" } }
        } },
        "scores": {}, "frequencies": []
    });
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn the_default_trust_is_configured() {
    let options = HttpOptions { default_min_trust: Trust::Exact, ..HttpOptions::default() };
    let client = Client::with_options(Example::running(), options);
    client.post("/query", D_QUERY).await;
    assert_eq!(client.backend.seen().min_trust, Trust::Exact);
    client.post("/query_by_hash", D_BY_HASH).await;
    assert_eq!(client.backend.seen().min_trust, Trust::Exact);
}

#[tokio::test]
async fn rows_of_other_tenants_and_sizes_never_mix() {
    let client = Client::new();
    for body in [
        r#"{"instance_id":7,"endpoint":"tcp://h:1","model":"m","block_size":4,"tenant_id":"t"}"#,
        r#"{"instance_id":"b","endpoint":"tcp://h:1","model":"m","block_size":16}"#,
        r#"{"instance_id":"c","endpoint":"tcp://h:1","model":"m","block_size":4,"additional_salt":"s"}"#,
    ] {
        assert_eq!(client.post("/register", body).await.status, 200);
    }
    let answer = client.post("/query", D_QUERY).await.json();
    let sizes: Vec<_> =
        ["7", "b", "c"].map(|i| answer["instances"][i]["block_size"].clone()).into();
    assert_eq!(sizes, [json!(4), json!(16), json!(4)]);
    assert_eq!(answer["instances"]["7"]["ranks"].as_object().unwrap().len(), 2);
    let salted =
        client.post("/query", r#"{"model":"m","token_ids":[],"additional_salt":"s"}"#).await;
    let rows = salted.json()["instances"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(rows, ["c"]);
}

#[tokio::test]
async fn a_million_tokens_fit() {
    let client = Client::new();
    let mut body = String::from(r#"{"model":"m","token_ids":[0"#);
    for id in 1..1_000_000 {
        body.push_str(&format!(",{}", id % 150_000));
    }
    body.push_str("]}");
    let answer = client.post("/query", body).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["instances"]["7"]["disk"]),
        (200, &json!(16))
    );
}
