//! Refuses requests that were meant for another host, and people's requests beyond the limit of their address.
//!
//! API calls are counted where the key is known (`extract::caller`); health checks and assets are not counted.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::HOST;
use actix_web::middleware::Next;
use actix_web::{HttpRequest, ResponseError as _, web};

use crate::web::Site;
use crate::web::limits::Limits;
use crate::web::pages::Pages;
use crate::web::problem::Problem;

/// Lets a request through, or answers it.
///
/// # Errors
/// As the handlers behind it.
pub async fn guard(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let Some(site) = request.app_data::<web::Data<Site>>().cloned() else {
        return Ok(next.call(request).await?.map_into_boxed_body());
    };
    // As the routes see it: `/s%69gnin` leads where `/signin` does.
    let routed = request.match_info().as_str();
    let path = routed.strip_prefix(site.prefix.as_str()).unwrap_or(routed);
    let health = matches!(routed, "/healthz" | "/readyz" | "/metrics");
    let api = path.starts_with("/v1") || path == "/openapi.json";
    let webhook = path.starts_with("/webhooks/");
    let free = api || health || path.starts_with("/static/");
    let elsewhere = site.api.is_some_and(|address| {
        let here = request.app_config().local_addr() == address;
        !health && here != api
    });
    let problem = if !health && !is_ours(request.request(), &site) {
        Some(Problem::misdirected())
    } else if elsewhere {
        // The API has a listener of its own, and that has nothing else.
        Some(Problem::not_found())
    } else if free {
        None
    } else {
        let signs_in = path.ends_with("/signin")
            || path.starts_with("/signin/")
            || path.starts_with("/handoff/")
            || path.ends_with("/authorize")
            || path.ends_with("/pay")
            || path.starts_with("/oauth/");
        request.app_data::<web::Data<Limits>>().and_then(|limits| {
            let checked = limits.check_address(request.request());
            checked
                .and_then(|()| if signs_in { limits.check_sign_in(request.request()) } else { Ok(()) })
                .err()
        })
    };
    match problem {
        None => Ok(next.call(request).await?.map_into_boxed_body()),
        Some(problem) => {
            let pages = request.app_data::<web::Data<Pages>>();
            let response = match pages {
                Some(pages) if !api && !health && !webhook => pages.problem(&problem),
                _ => problem.error_response(),
            };
            Ok(request.into_response(response))
        }
    }
}

/// Whether every name that the request gives its host is ours: one `Host`, and the authority of a target in
/// absolute form or of HTTP/2, which counts for more (RFC 9112 §3.2.2, RFC 9113 §8.3.1).
fn is_ours(request: &HttpRequest, site: &Site) -> bool {
    let headers = request.headers().get_all(HOST).map(|host| host.to_str().unwrap_or_default());
    let authority = request.uri().authority().map(actix_web::http::uri::Authority::as_str);
    let mut named = headers.chain(authority).peekable();
    named.peek().is_some()
        && request.headers().get_all(HOST).count() <= 1
        && named.all(|host| site.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host)))
}
