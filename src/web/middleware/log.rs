//! One log line a request: method, route template, status, duration. Never the target itself.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use actix_web::web;

use crate::flow::Gate;

/// Logs a request once it is answered.
///
/// # Errors
/// As the handlers behind it.
pub async fn log(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let gate = request.app_data::<web::Data<Gate>>().cloned();
    let now = || gate.as_ref().map(|gate| gate.now());
    let start = now();
    let response = next.call(request).await?;
    let milliseconds = match (start, now()) {
        (Some(start), Some(end)) => start.until(end).as_millis(),
        _ => 0,
    };
    let route = response.request().match_pattern().unwrap_or_else(|| "(none)".to_owned());
    let method = match response.request().method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS" | "PATCH") => known,
        _ => "(other)",
    };
    let status = response.status().as_u16();
    tracing::info!(method, route, status, milliseconds, "answered");
    Ok(response)
}
