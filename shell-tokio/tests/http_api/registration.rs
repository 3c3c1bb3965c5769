//! `/register` and `/unregister`.

use crate::client::Client;
use crate::example::Example;
use kvmirror_core::id::{Rank, RankKey};
use kvmirror_core::index::Duplicates;
use kvmirror_tokio::http::HttpOptions;
use kvmirror_tokio::registry::{EngineKind, InstanceName, RankFacts, RegistryLimits};
use serde_json::{Value, json};

const M_REGISTER: &str = r#"{"endpoint":"tcp://127.0.0.1:5557","replay_endpoint":"tcp://127.0.0.1:5558","type":"vLLM","modelname":"m","lora_name":"","tenant_id":"default","instance_id":"engine-a","block_size":16,"dp_rank":0,"additionalsalt":""}"#;
const D_REGISTER: &str = r#"{"instance_id":7,"endpoint":"tcp://127.0.0.1:5557","model_name":"m","block_size":4,"dp_rank":0}"#;

fn client() -> Client {
    Client::over(Example::empty())
}

fn facts(client: &Client, name: &str, tenant: &str, rank: u32) -> RankFacts {
    let registry = client.backend.registry();
    let worker = registry.worker(&InstanceName::text(name), tenant).unwrap();
    registry.rank(RankKey { worker, rank: Rank(rank) }).unwrap().clone()
}

#[tokio::test]
async fn the_literal_registrations_are_answered_exactly() {
    for (request, status, answer) in [
        (
            M_REGISTER,
            200,
            json!({ "status": "registered successfully", "instance_id": "engine-a" }),
        ),
        (D_REGISTER, 201, json!({ "status": "ok", "instance_id": 7 })),
    ] {
        let client = client();
        for repeat in 0..3 {
            let answered = client.post("/register", request).await;
            assert_eq!((answered.status.as_u16(), answered.json()), (status, answer.clone()));
            assert_eq!(answered.header("content-type"), "application/json");
            assert_eq!(client.backend.registry().len(), 1, "repeat {repeat} has no effect");
        }
    }
}

#[tokio::test]
async fn every_field_arrives() {
    let client = client();
    let body = r#"{"instance_id":"a","endpoint":"tcp://[::1]:1","replay_endpoint":"tcp://h:2","model":"m",
        "block_size":64,"type":"sglang","dp_rank":3,"routing_group":"t","lora_name":"l","additional_salt":"s",
        "hash_profile":{"x":[1]},"cache_group":0,"duplicates":"set","eagle":true,"image_token_id":5,
        "video_token_id":4294967295,"topic":"ignored","unknown":[{}]}"#;
    assert_eq!(client.post("/register", body).await.status, 200);
    let RankFacts { registration: r, .. } = facts(&client, "a", "t", 3);
    assert_eq!(r.endpoint.to_string(), "tcp://[::1]:1");
    assert_eq!(r.replay_endpoint.unwrap().to_string(), "tcp://h:2");
    assert_eq!((r.model.as_str(), r.block_size.get(), r.kind), ("m", 64, EngineKind::SgLang));
    assert_eq!((r.lora.as_str(), r.salt.as_str(), r.topic.as_str()), ("l", "s", ""));
    assert_eq!((r.duplicates, r.eagle), (Duplicates::Set, true));
    assert_eq!((r.image_token_id, r.video_token_id), (Some(5), Some(u32::MAX)));
}

#[tokio::test]
async fn null_and_empty_texts_are_absent() {
    let bare = r#"{"instance_id":"a","endpoint":"tcp://h:1","model":"m","block_size":4}"#;
    let nulls = r#"{"instance_id":"a","endpoint":"tcp://h:1","model":"m","block_size":4,"model_name":null,
        "replay_endpoint":null,"type":null,"dp_rank":null,"tenant_id":null,"routing_group":null,
        "lora_name":null,"additional_salt":null,"duplicates":null,"eagle":null,
        "image_token_id":null,"video_token_id":null}"#;
    let empties = r#"{"instance_id":"a","endpoint":"tcp://h:1","model":"m","block_size":4,
        "replay_endpoint":"","tenant_id":"","routing_group":"default","lora_name":"","additionalsalt":""}"#;
    let client = client();
    for body in [bare, nulls, empties] {
        let answer = client.post("/register", body).await;
        assert_eq!(answer.status, 200, "M spelling: {}", answer.text);
    }
    assert_eq!(client.backend.registry().len(), 1);
}

#[tokio::test]
async fn aliases_may_agree_but_not_differ() {
    let base = json!({ "instance_id": "a", "endpoint": "tcp://h:1", "block_size": 4 });
    for (extra, status, field) in [
        (json!({ "model": "m", "model_name": "m", "modelname": "m" }), 201, ""),
        (json!({ "model": "m", "tenant_id": "t", "routing_group": "t" }), 200, ""),
        (json!({ "model": "m", "additional_salt": "t", "additionalsalt": "t" }), 200, ""),
        (json!({ "model": "m", "model_name": "n" }), 400, "model"),
        (json!({ "model": "m", "modelname": "n" }), 400, "model"),
        (json!({ "model": "m", "tenant_id": "t", "routing_group": "u" }), 400, "routing_group"),
        (
            json!({ "model": "m", "additional_salt": "t", "additionalsalt": "u" }),
            400,
            "additionalsalt",
        ),
    ] {
        let mut body = base.clone();
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let answer = client().post("/register", body.to_string()).await;
        assert_eq!(answer.status.as_u16(), status, "{extra}: {}", answer.text);
        if status == 400 {
            let problem = answer.json();
            assert_eq!(
                (&problem["reason"], &problem["field"]),
                (&json!("conflict"), &json!(field))
            );
        }
    }
}

#[tokio::test]
async fn contradictions_with_what_is_registered_are_409() {
    let client = client();
    assert_eq!(client.post("/register", D_REGISTER).await.status, 201);
    for (change, field) in [
        (json!({ "endpoint": "tcp://127.0.0.1:1" }), "endpoint"),
        (json!({ "replay_endpoint": "tcp://127.0.0.1:1" }), "replay_endpoint"),
        (json!({ "type": "SGLang" }), "type"),
        (json!({ "lora_name": "l" }), "lora_name"),
        (json!({ "duplicates": "set" }), "duplicates"),
        (json!({ "eagle": true }), "eagle"),
        (json!({ "image_token_id": 1 }), "image_token_id"),
        (json!({ "video_token_id": 1 }), "video_token_id"),
        (json!({ "dp_rank": 1, "model_name": "n" }), "model_name"),
        (json!({ "dp_rank": 1, "block_size": 8 }), "block_size"),
        (json!({ "dp_rank": 1, "additional_salt": "s" }), "additional_salt"),
    ] {
        let mut body: Value = serde_json::from_str(D_REGISTER).unwrap();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = client.post("/register", body.to_string()).await;
        let problem = answer.json();
        assert_eq!(answer.status, 409, "{change}");
        assert_eq!((&problem["reason"], &problem["field"]), (&json!("conflict"), &json!(field)));
        assert_eq!(client.backend.registry().len(), 1);
    }
    for allowed in [
        r#"{"instance_id":8,"endpoint":"tcp://127.0.0.1:5557","model_name":"m","block_size":8}"#,
        r#"{"instance_id":7,"endpoint":"tcp://127.0.0.1:5557","model_name":"n","block_size":8,"routing_group":"t"}"#,
    ] {
        assert_eq!(client.post("/register", allowed).await.status, 201);
    }
}

#[tokio::test]
async fn names_keep_their_type_and_are_one_name() {
    let client = client();
    let text = D_REGISTER.replace(":7,", ":\"7\",");
    assert_eq!(client.post("/register", D_REGISTER).await.json()["instance_id"], json!(7));
    assert_eq!(client.post("/register", text).await.status, 201);
    assert_eq!(client.backend.registry().len(), 1);
    let listed = client.get("/workers").await.json();
    assert_eq!(listed[0]["instance_id"], json!(7));
    let other = D_REGISTER.replace(":7,", ":\"007\",");
    assert_eq!(client.post("/register", other).await.json()["instance_id"], json!("007"));
    let largest = D_REGISTER.replace(":7,", ":18446744073709551615,");
    assert_eq!(client.post("/register", largest).await.json()["instance_id"], json!(u64::MAX));
    assert_eq!(client.backend.registry().len(), 3);
}

#[tokio::test]
async fn the_literal_unregistrations_are_answered_exactly() {
    let client = client();
    client.post("/register", M_REGISTER).await;
    let request = r#"{"instance_id":"engine-a","tenant_id":"default","dp_rank":0}"#;
    let answer = client.post("/unregister", request).await;
    let expected = json!({
        "status": "unregistered successfully",
        "removed_instances": ["engine-a|default|0"]
    });
    assert_eq!((answer.status.as_u16(), answer.json()), (200, expected));

    client.post("/register", D_REGISTER.replace("\"dp_rank\":0", "\"dp_rank\":1")).await;
    let request = r#"{"instance_id":7,"model_name":"m","routing_group":"default","dp_rank":1}"#;
    let answer = client.post("/unregister", request).await;
    let expected = json!({ "status": "ok", "removed_instances": ["7|default|1"] });
    assert_eq!((answer.status.as_u16(), answer.json()), (200, expected));
    assert!(client.backend.registry().is_empty());
}

#[tokio::test]
async fn without_a_rank_all_ranks_go() {
    for body in [
        r#"{"instance_id":7}"#,
        r#"{"instance_id":"7","model_name":"m","type":"x","lora_name":"l","block_size":1}"#,
    ] {
        let client = Client::new();
        let answer = client.post("/unregister", body).await;
        assert_eq!(answer.json()["removed_instances"], json!(["7|default|0", "7|default|1"]));
    }
}

#[tokio::test]
async fn a_missing_tenant_means_default_in_m_and_the_only_one_in_d() {
    let client = client();
    let body =
        |tenant: &str| D_REGISTER.replace("}", &format!(",\"routing_group\":\"{tenant}\"}}"));
    client.post("/register", body("a")).await;
    let m = client.post("/unregister", r#"{"instance_id":7,"dp_rank":0}"#).await;
    assert_eq!(m.status, 404);
    client.post("/register", body("b")).await;
    let d = r#"{"instance_id":7,"model_name":"m","dp_rank":0}"#;
    let several = client.post("/unregister", d).await;
    assert_eq!((several.status.as_u16(), &several.json()["reason"]), (409, &json!("conflict")));
    let named = r#"{"instance_id":7,"model_name":"m","tenant_id":"a","dp_rank":0}"#;
    assert_eq!(client.post("/unregister", named).await.status, 200);
    let only = client.post("/unregister", d).await;
    assert_eq!(only.json()["removed_instances"], json!(["7|b|0"]));
}

#[tokio::test]
async fn unknown_registrations_are_404() {
    let client = Client::new();
    for (body, error) in [
        (r#"{"instance_id":7,"model_name":"m","dp_rank":5}"#, "instance 7 dp_rank 5 not found"),
        (r#"{"instance_id":8,"model_name":"m"}"#, "instance 8 not found"),
        (r#"{"instance_id":7,"model_name":"n"}"#, "instance 7 not found"),
        (r#"{"instance_id":7,"tenant_id":"t"}"#, "instance 7 not found"),
    ] {
        let answer = client.post("/unregister", body).await;
        let problem = answer.json();
        assert_eq!((answer.status.as_u16(), &problem["reason"]), (404, &json!("not_found")));
        assert_eq!(problem["error"], json!(error));
    }
    assert_eq!(client.backend.registry().len(), 2);
}

#[tokio::test]
async fn the_last_rank_makes_the_model_unknown() {
    let client = Client::new();
    client.post("/unregister", r#"{"instance_id":7}"#).await;
    let d = client.post("/query", r#"{"model_name":"m","token_ids":[]}"#).await;
    assert_eq!(d.status, 404);
    let m = client.post("/query", r#"{"model":"m","token_ids":[]}"#).await;
    assert_eq!((m.status.as_u16(), &m.json()["instances"]), (200, &json!({})));
}

#[tokio::test]
async fn limits_of_the_registry_and_of_hosts() {
    let limits = RegistryLimits { registrations: 1, ..RegistryLimits::default() };
    let client = Client::over(Example::limited(limits));
    assert_eq!(client.post("/register", D_REGISTER).await.status, 201);
    let full = client.post("/register", D_REGISTER.replace(":7,", ":8,")).await;
    assert_eq!((full.status.as_u16(), &full.json()["reason"]), (429, &json!("rate_limited")));

    let client = Client::with_options(Example::empty(), HttpOptions::default());
    assert_eq!(client.post("/register", D_REGISTER).await.status, 201, "loopback by default");
    let elsewhere = client.post("/register", D_REGISTER.replace("127.0.0.1", "10.0.0.1")).await;
    assert_eq!((elsewhere.status.as_u16(), &elsewhere.json()["field"]), (400, &json!("endpoint")));

    let options = HttpOptions { allowed_hosts: vec!["Engine-A".into()], ..HttpOptions::default() };
    let client = Client::with_options(Example::empty(), options);
    let refused = client.post("/register", D_REGISTER).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["field"]), (400, &json!("endpoint")));
    let allowed = D_REGISTER.replace("127.0.0.1", "engine-a");
    assert_eq!(client.post("/register", allowed).await.status, 201);
}
