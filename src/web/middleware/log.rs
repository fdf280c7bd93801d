//! One log line a request: method, route template, status, duration. Never the target itself.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use tracing::Instrument as _;

use crate::telemetry::{Stopwatch, answered, traces};

/// Logs a request once it is answered.
///
/// # Errors
/// As the handlers behind it.
pub async fn log(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let method = match request.method().as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "PATCH" => "PATCH",
        _ => "(other)",
    };
    let traceparent = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    let span = traces::request(method, traceparent);
    let stopwatch = Stopwatch::start();
    let response = next.call(request).instrument(span.clone()).await?;
    let milliseconds = stopwatch.elapsed().as_millis();
    let route = response.request().match_pattern().unwrap_or_else(|| "(none)".to_owned());
    let status = response.status().as_u16();
    traces::answered(&span, &route, status);
    answered(method, &route, status, stopwatch);
    tracing::info!(method, route, status, milliseconds, "answered");
    Ok(response)
}
