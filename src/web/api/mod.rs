//! The HTTP API: for tool handlers (`/v1/rounds`, `/v1/elicitations`, `/v1/handoffs`) and for operators (`/v1/admin`); and
//! `/webhooks`, where payment processors call.
//!
//! A handler takes what it needs from the request, calls one use case, and maps the answer.

pub mod admin;
pub mod admin_kept;
pub mod admin_one;
pub mod admin_webhooks;
pub mod ask;
pub mod elicitations;
pub mod handoffs;
pub mod health;
pub mod kept;
pub mod openapi;
pub mod prometheus;
pub mod rounds;
pub mod view;
pub mod webhooks;

use actix_web::{HttpResponse, Resource, web};

use super::problem::Problem;

/// The routes of the API.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(at("/v1/rounds", "POST").route(web::post().to(rounds::round)))
        .service(at("/v1/elicitations", "POST").route(web::post().to(elicitations::issue)))
        .service(at("/v1/elicitations/{id}", "GET").route(web::get().to(elicitations::status)))
        .service(at("/v1/elicitations/{id}/claim", "POST").route(web::post().to(elicitations::claim)))
        .service(at("/v1/elicitations/{id}/confirm", "POST").route(web::post().to(elicitations::confirm)))
        .service(at("/v1/elicitations/{id}/cancel", "POST").route(web::post().to(elicitations::cancel)))
        .service(at("/v1/handoffs/{handoff}", "POST").route(web::post().to(handoffs::accept)))
        .service(at("/v1/kept/use", "POST").route(web::post().to(kept::use_it)))
        .service(at("/v1/kept/discard", "POST").route(web::post().to(kept::discard)))
        .service(at("/v1/admin/kept/search", "POST").route(web::post().to(admin_kept::search)))
        .service(at("/v1/admin/kept/revoke", "POST").route(web::post().to(admin_kept::revoke)))
        .service(at("/v1/admin/webhooks/search", "POST").route(web::post().to(admin_webhooks::search)))
        .service(at("/v1/admin/webhooks/retry", "POST").route(web::post().to(admin_webhooks::retry)))
        .service(at("/v1/admin/elicitations/search", "POST").route(web::post().to(admin::search)))
        .service(at("/v1/admin/elicitations/revoke", "POST").route(web::post().to(admin::revoke_matching)))
        .service(at("/v1/admin/elicitations/{id}", "GET").route(web::get().to(admin_one::show)))
        .service(at("/v1/admin/elicitations/{id}/revoke", "POST").route(web::post().to(admin::revoke)))
        .service(at("/webhooks/{payment}", "POST").route(web::post().to(webhooks::hear)))
        .service(at("/openapi.json", "GET").route(web::get().to(openapi::document)))
        .service(web::scope("/v1").default_service(web::to(not_found)));
}

/// The routes that a supervisor asks. They stand at the root, whatever path the service is reached under.
pub fn health_routes(config: &mut web::ServiceConfig) {
    config
        .service(at("/healthz", "GET").route(web::get().to(health::alive)))
        .service(at("/readyz", "GET").route(web::get().to(health::ready)))
        .service(at("/metrics", "GET").route(web::get().to(prometheus::metrics)));
}

/// The routes of a listener for Prometheus alone.
pub fn metrics_routes(config: &mut web::ServiceConfig) {
    config
        .service(at("/metrics", "GET").route(web::get().to(prometheus::open)))
        .default_service(web::to(not_found));
}

/// A path that answers one method.
fn at(path: &str, method: &'static str) -> Resource {
    let otherwise = move || async move { Err::<HttpResponse, _>(Problem::method_not_allowed(method)) };
    web::resource(path).default_service(web::to(otherwise))
}

async fn not_found() -> Result<HttpResponse, Problem> {
    Err(Problem::not_found())
}
