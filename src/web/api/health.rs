//! Is the process alive, and can it take steps?

use actix_web::{HttpResponse, web};
use serde_json::json;

use crate::flow::Gate;
use crate::web::problem::Problem;

/// 200 as long as the process answers. Needs no store.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "The process answers")))]
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

/// 200 if steps can be taken; 503 while the store cannot work or the service is shutting down.
///
/// # Errors
/// [`Problem`] 503.
#[utoipa::path(get, path = "/readyz", tag = "health", responses(
    (status = 200, description = "Steps can be taken"),
    (status = 503, description = "The store cannot work now, or the service is shutting down", body = Problem),
))]
pub async fn ready(gate: web::Data<Gate>) -> Result<HttpResponse, Problem> {
    gate.ready().await?;
    Ok(HttpResponse::Ok().json(json!({"status": "ready"})))
}
