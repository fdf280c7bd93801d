//! The HTTP API: for tool handlers (`/v1/rounds`, `/v1/elicitations`) and for operators (`/v1/admin`).
//!
//! A handler takes what it needs from the request, calls one use case, and maps the answer.

pub mod admin;
pub mod ask;
pub mod elicitations;
pub mod health;
pub mod openapi;
pub mod rounds;
pub mod view;

use actix_web::{Resource, web};

use super::problem::Problem;

/// The routes of the API.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(at("/v1/rounds").route(web::post().to(rounds::round)))
        .service(at("/v1/elicitations").route(web::post().to(elicitations::issue)))
        .service(at("/v1/elicitations/{id}").route(web::get().to(elicitations::status)))
        .service(at("/v1/elicitations/{id}/claim").route(web::post().to(elicitations::claim)))
        .service(at("/v1/elicitations/{id}/cancel").route(web::post().to(elicitations::cancel)))
        .service(at("/v1/admin/elicitations/search").route(web::post().to(admin::search)))
        .service(at("/v1/admin/elicitations/revoke").route(web::post().to(admin::revoke_matching)))
        .service(at("/v1/admin/elicitations/{id}/revoke").route(web::post().to(admin::revoke)))
        .service(at("/openapi.json").route(web::get().to(openapi::document)))
        .service(web::scope("/v1").default_service(web::to(not_found)));
}

/// The routes that a supervisor asks. They stand at the root, whatever path the service is reached under.
pub fn health_routes(config: &mut web::ServiceConfig) {
    config
        .service(at("/healthz").route(web::get().to(health::alive)))
        .service(at("/readyz").route(web::get().to(health::ready)));
}

fn at(path: &str) -> Resource {
    web::resource(path).default_service(web::to(method_not_allowed))
}

async fn method_not_allowed() -> Result<actix_web::HttpResponse, Problem> {
    Err(Problem::method_not_allowed())
}

async fn not_found() -> Result<actix_web::HttpResponse, Problem> {
    Err(Problem::not_found())
}
