//! `GET`.

use crate::client::{Client, assert_superset};
use serde_json::json;

#[tokio::test]
async fn the_literal_list_of_workers() {
    let expected: serde_json::Value = serde_json::from_str(
        r#"[{"instance_id":7,"source":"zmq","status":"active","model_name":"m","routing_group":"default","block_size":4,"endpoints":{"1":"tcp://127.0.0.1:15558","0":"tcp://127.0.0.1:15557"},"listeners":{"1":{"endpoint":"tcp://127.0.0.1:15558","status":"active"},"0":{"endpoint":"tcp://127.0.0.1:15557","status":"active"}}}]"#,
    )
    .unwrap();
    let answer = Client::new().get("/workers").await;
    assert_eq!(answer.status, 200);
    assert_superset(&answer.json(), &expected);
    let ours = json!([{
        "tenant_id": "default", "worker_id": 7, "type": "vLLM", "additional_salt": "",
        "listeners": {
            "0": { "replay_endpoint": null, "trust": "exact", "cursor": 41, "age_ms": 120 },
            "1": { "trust": "partial", "reason": "history_unknown", "cursor": 12, "age_ms": 80 }
        }
    }]);
    assert_superset(&answer.json(), &ours);
    assert!(answer.json()[0]["listeners"]["0"].get("last_error").is_none());
}

#[tokio::test]
async fn filters_are_exact_under_every_name() {
    let client = Client::new();
    for (query, count) in [
        ("", 1),
        ("?model_name=&routing_group=", 1),
        ("?model_name=m&routing_group=default", 1),
        ("?model=m", 1),
        ("?modelname=m&model=m", 1),
        ("?tenant_id=default", 1),
        ("?tenant_id=t", 0),
        ("?routing_group=t", 0),
        ("?model_name=M", 0),
        ("?model_name=%6D", 1),
        ("?unknown=1", 1),
    ] {
        let answer = client.get(&format!("/workers{query}")).await;
        assert_eq!(answer.status, 200, "{query}");
        assert_eq!(answer.json().as_array().unwrap().len(), count, "{query}");
    }
    let answer = client.get("/workers?tenant_id=a&routing_group=b").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["reason"]), (400, &json!("conflict")));
}

#[tokio::test]
async fn health_is_an_empty_200() {
    let answer = Client::new().get("/health").await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""));
}

#[tokio::test]
async fn metrics_count_the_requests() {
    let client = Client::new();
    client.get("/health").await;
    client.get("/health").await;
    client.get("/no/such/path").await;
    client.post("/query", "{}").await;
    let answer = client.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        "kvmirror_queries_total 0",
        "# TYPE kvmirror_http_requests_total counter",
        "kvmirror_http_requests_total{path=\"/health\",code=\"200\"} 2",
        "kvmirror_http_requests_total{path=\"other\",code=\"404\"} 1",
        "kvmirror_http_requests_total{path=\"/query\",code=\"400\"} 1",
    ] {
        assert!(answer.text.lines().any(|written| written == line), "{line}\n{}", answer.text);
    }
}
