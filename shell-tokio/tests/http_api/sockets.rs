//! What only a real connection shows.

use crate::example::Example;
use core::net::SocketAddr;
use kvmirror_tokio::http::{
    BODIES_IN_WORK_BYTES, HttpOptions, OTHER_BODY_BYTES, QUERY_BODY_BYTES, router,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

struct Server {
    address: SocketAddr,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = router(Arc::new(Example::running()), HttpOptions::default());
        let task = tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, task }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A call that declares a body and waits until the server asks for it.
    async fn announced(&self, length: usize) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "POST /query HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn status(stream: &mut TcpStream) -> String {
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    String::from_utf8(line.to_vec()).unwrap()
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn a_usual_client_is_answered() {
    let server = Server::start().await;
    let query = json!({ "model_name": "m", "token_ids": (0..17).collect::<Vec<_>>() });
    let answer = client().post(server.url("/query")).json(&query).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["scores"], json!({ "7": { "0": 8, "1": 4 } }));
}

#[tokio::test]
async fn a_body_declared_too_large_is_refused() {
    let server = Server::start().await;
    let mut stream = server.announced(QUERY_BODY_BYTES + 1).await;
    assert_eq!(status(&mut stream).await, "HTTP/1.1 413");
    let large = vec![b' '; OTHER_BODY_BYTES + 1];
    let answer = client().post(server.url("/register")).body(large).send().await;
    // The server may close before it has read everything: then the client sees a broken pipe.
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status() == 413));
}

#[tokio::test]
async fn bodies_in_work_are_bounded() {
    let server = Server::start().await;
    let mut waiting = Vec::new();
    for _ in 0..BODIES_IN_WORK_BYTES / QUERY_BODY_BYTES {
        let mut stream = server.announced(QUERY_BODY_BYTES).await;
        assert_eq!(status(&mut stream).await, "HTTP/1.1 100");
        waiting.push(stream);
    }
    let query = json!({ "model": "m", "token_ids": [] });
    let refused = client().post(server.url("/query")).json(&query).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["reason"], json!("rate_limited"));
    let health = client().get(server.url("/health")).send().await.unwrap();
    assert_eq!(health.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_must_arrive_in_time() {
    let server = Server::start().await;
    let mut stream = server.announced(100).await;
    assert_eq!(status(&mut stream).await, "HTTP/1.1 100");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("HTTP/1.1 400") && rest.contains("did not arrive in time"), "{rest}");
}
