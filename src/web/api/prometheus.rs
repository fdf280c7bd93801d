//! What is counted, for Prometheus.

use actix_web::HttpResponse;
use actix_web::http::header::CONTENT_TYPE;

use crate::telemetry;
use crate::web::extract::caller::ApiOperator;
use crate::web::problem::Problem;

/// Everything that is counted, for an operator's key. A listener of its own (`metrics.listen`) asks for none.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, description = "Prometheus' text format", content_type = "text/plain")),
    security(("operator" = [])))]
pub async fn metrics(_operator: ApiOperator) -> Result<HttpResponse, Problem> {
    Ok(open().await)
}

/// The same, for whoever can reach the listener.
pub async fn open() -> HttpResponse {
    let text = telemetry::render().unwrap_or_default();
    HttpResponse::Ok().insert_header((CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")).body(text)
}
