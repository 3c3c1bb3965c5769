//! A service that ends by itself.

use crate::service;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_service_can_be_stopped() {
    let mut service = service().await;
    service.follower.stop().await;
    let error = service.failed().await;
    assert!(error.to_string().contains("ended"), "{error}");
    service.stop().await;
}
