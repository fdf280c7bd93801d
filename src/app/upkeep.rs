//! What the service does for itself while it runs.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::flow::Gate;
use crate::web::tls::Certificates;

const SWEEP_EVERY: Duration = Duration::from_secs(1);
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// Has changed certificates shown. What is not good is logged once, and the last good one stays.
pub(super) async fn keep_renewing(certificates: &Arc<Certificates>, gate: &Gate) {
    let mut said = String::new();
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        let (certificates, now) = (Arc::clone(certificates), gate.now());
        // Files are read, and keys are parsed.
        let Ok(renewed) = web::block(move || certificates.reload(now)).await else { return };
        match renewed {
            Ok(true) => tracing::info!("a new TLS certificate is shown from now on"),
            Ok(false) => said.clear(),
            Err(error) if said != error.to_string() => {
                tracing::error!(%error, "the TLS certificate cannot be renewed; the last good one stays");
                said = error.to_string();
            }
            Err(_) => {}
        }
    }
}

/// Sweeps until shutdown, whatever happens: what has expired must not stay because of one bad moment.
pub(super) async fn keep_sweeping(gate: web::Data<Gate>, shutdown: CancellationToken) {
    while AssertUnwindSafe(sweep(&gate, &shutdown)).catch_unwind().await.is_err() {
        tracing::error!("the sweep broke off where it never should; it begins again");
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}

async fn sweep(gate: &Gate, shutdown: &CancellationToken) {
    while !shutdown.is_cancelled() {
        match gate.tend().await {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(SWEEP_EVERY).await,
            Err(error) => {
                tracing::error!(%error, "what is due could not be done; it will be tried again");
                tokio::time::sleep(2 * SWEEP_EVERY).await;
            }
        }
    }
}
