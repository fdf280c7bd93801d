//! The description of the API, `openapi.json`.

use actix_web::HttpResponse;
use utoipa::OpenApi as _;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use super::{
    admin, admin_kept, admin_one, admin_webhooks, elicitations, handoffs, health, kept, prometheus, rounds,
};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Sidegate",
        description = "Hands an MCP tool handler a link for what must never pass through an MCP client, and the outcome once.",
    ),
    paths(
        rounds::round,
        elicitations::issue,
        elicitations::status,
        elicitations::claim,
        elicitations::confirm,
        elicitations::cancel,
        handoffs::accept,
        kept::use_it,
        kept::discard,
        admin_kept::search,
        admin_kept::revoke,
        admin_webhooks::search,
        admin_webhooks::retry,
        admin::search,
        admin::revoke,
        admin_one::show,
        admin::revoke_matching,
        health::alive,
        health::ready,
        prometheus::metrics,
    ),
    modifiers(&Keys),
)]
struct Description;

struct Keys;

impl utoipa::Modify for Keys {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let components = description.components.get_or_insert_default();
        for (holder, prefix) in [("client", "sgk_"), ("operator", "sgo_")] {
            let scheme = HttpBuilder::new()
                .scheme(HttpAuthScheme::Bearer)
                .description(Some(format!("An API key that begins with `{prefix}`")))
                .build();
            components.add_security_scheme(holder, SecurityScheme::Http(scheme));
        }
    }
}

/// The description, as JSON.
#[must_use]
pub fn description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

/// Serves the description.
pub async fn document() -> HttpResponse {
    HttpResponse::Ok().json(description())
}
