//! A link's page, and the page after its form. Reading them changes nothing that a link scanner could spend:
//! only the verified person's first look is noted.

use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};

use super::text::Notice;
use super::{Pages, page_id};
use crate::flow::Gate;
use crate::flow::open::Guest;
use crate::web::extract::browser::with_browser;

/// `GET /e/{id}`: the page.
pub async fn page(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let guest = match arrive(&gate, &pages, &request).await {
        Ok(guest) => guest,
        Err(response) => return response,
    };
    if request.method() == Method::GET
        && !is_prefetch(&request)
        && let Err(error) = gate.note_opened(&guest).await
    {
        return pages.failed(error, &guest.client().name);
    }
    pages.standing(&gate, &guest)
}

/// `GET /e/{id}/done`: how it stands, once the person has sent a form.
pub async fn done(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    match arrive(&gate, &pages, &request).await {
        Err(response) => response,
        Ok(guest)
            if guest.elicitation().state().name().is_live()
                && guest.elicitation().awaits_code().is_none()
                && !guest.elicitation().is_processing() =>
        {
            Pages::see_other(pages.path(guest.elicitation().id()))
        }
        Ok(guest) => pages.standing(&gate, &guest),
    }
}

/// The guest of the link in the path, or the page for whoever else came.
pub(super) async fn arrive(
    gate: &Gate,
    pages: &Pages,
    request: &HttpRequest,
) -> Result<Box<Guest>, HttpResponse> {
    arrive_or(gate, pages, request, None).await
}

/// The same; `otherwise` is what somebody reads who is not signed in.
pub(super) async fn arrive_or(
    gate: &Gate,
    pages: &Pages,
    request: &HttpRequest,
    otherwise: Option<(StatusCode, Notice)>,
) -> Result<Box<Guest>, HttpResponse> {
    let id = page_id(request).map_err(|problem| pages.problem(&problem))?;
    let arrival = with_browser(request, async |browser| gate.arrive(id, browser).await).await;
    pages.turned_away(id, arrival.map_err(|error| pages.failed(error, ""))?, otherwise)
}

/// Whether the browser looks ahead, without the person having asked for the page.
fn is_prefetch(request: &HttpRequest) -> bool {
    let purpose = request.headers().get("sec-purpose").and_then(|purpose| purpose.to_str().ok());
    purpose.is_some_and(|purpose| purpose.contains("prefetch"))
}
