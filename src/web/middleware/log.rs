//! One log line a request: method, route template, status, duration. Never the target itself.

use crate::telemetry::{Stopwatch, answered};
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;

/// Logs a request once it is answered.
///
/// # Errors
/// As the handlers behind it.
pub async fn log(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let stopwatch = Stopwatch::start();
    let response = next.call(request).await?;
    let milliseconds = stopwatch.elapsed().as_millis();
    let route = response.request().match_pattern().unwrap_or_else(|| "(none)".to_owned());
    let method = match response.request().method().as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "PATCH" => "PATCH",
        _ => "(other)",
    };
    let status = response.status().as_u16();
    answered(method, &route, status, stopwatch);
    tracing::info!(method, route, status, milliseconds, "answered");
    Ok(response)
}
