//! The forms of a link's page: send, decline, more time. Each first finds out anew who is at the browser, and
//! whether the form is ours.

use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::{Error, FromRequest, HttpRequest, HttpResponse, web};

use super::Pages;
use super::open::arrive_or;
use super::sign_in::{cookie, set};
use super::text::Notice;
use crate::domain::Request;
use crate::domain::secret::Field;
use crate::flow::finish::Submitted;
use crate::flow::open::Guest;
use crate::flow::{self, Gate};
use crate::web::Site;
use crate::web::extract::form::{Form, is_same_origin};

/// A form without entries: the proof and little else.
pub(super) const BARE_FORM: usize = 4 * 1024;
/// Bytes that a character may take in a form: four in UTF-8, each written as `%XX`.
const PER_CHARACTER: usize = 12;

/// What the forms' handlers need.
pub struct Desk {
    pub(super) gate: web::Data<Gate>,
    pub(super) pages: web::Data<Pages>,
    pub(super) site: web::Data<Site>,
    pub(super) request: HttpRequest,
}

impl FromRequest for Desk {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Error>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let parts = <(web::Data<Gate>, web::Data<Pages>, web::Data<Site>)>::from_request(request, payload);
        let request = request.clone();
        Box::pin(async move {
            let (gate, pages, site) = parts.await?;
            Ok(Self { gate, pages, site, request })
        })
    }
}

/// `POST /e/{id}/secret`: the person sends what they entered.
pub async fn secret(desk: Desk, payload: web::Payload) -> HttpResponse {
    let (guest, form) = match desk.receive(payload).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let entered = |name: &str| form.value(name);
    let render = form.value("_render").unwrap_or_default();
    match desk.gate.submit_secret(&guest, render, entered).await {
        // At once and not after a redirect: the one chance where cookies are not kept.
        Ok(Submitted::Finished { code, left, cookie: mark }) => {
            let mut response = desk.pages.code(&code, left, guest.client());
            if let Some((name, value)) = mark {
                set(&mut response, &cookie(name, value));
            }
            response
        }
        Ok(Submitted::AnsweredElsewhere) => desk.pages.answered_elsewhere(guest.client()),
        Ok(Submitted::Rejected(errors)) => {
            desk.pages.form(&desk.gate, &guest, StatusCode::UNPROCESSABLE_ENTITY, &errors, &entered)
        }
        Ok(Submitted::Completed) => desk.on_to(&guest, "/done", Ok(())),
        Err(error) => desk.on_to(&guest, "/done", Err(error)),
    }
}

/// `POST /e/{id}/decline`: the person says no.
pub async fn decline(desk: Desk, payload: web::Payload) -> HttpResponse {
    match desk.receive(payload).await {
        Ok((guest, _)) => desk.on_to(&guest, "/done", desk.gate.decline(&guest).await),
        Err(response) => response,
    }
}

/// `POST /e/{id}/extend`: the person asks for more time.
pub async fn extend(desk: Desk, payload: web::Payload) -> HttpResponse {
    match desk.receive(payload).await {
        Ok((guest, _)) => desk.on_to(&guest, "", desk.gate.extend(&guest).await),
        Err(response) => response,
    }
}

impl Desk {
    /// The guest and the form that they sent, once both are known to be right.
    pub(super) async fn receive(&self, payload: web::Payload) -> Result<(Box<Guest>, Form), HttpResponse> {
        let signed_out = Some((StatusCode::UNAUTHORIZED, Notice::SignedOut));
        let guest = arrive_or(&self.gate, &self.pages, &self.request, signed_out).await?;
        let limit = form_limit(&guest.elicitation().terms().request);
        let form = Form::read(&self.request, &mut payload.into_inner(), limit)
            .await
            .map_err(|problem| self.pages.problem(&problem))?;
        let same_origin = is_same_origin(&self.request, &self.site.public_url);
        self.gate
            .check_form(&guest, form.proof().as_ref(), same_origin)
            .await
            .map_err(|error| self.pages.failed(error, &guest.client().name))?;
        Ok((guest, form))
    }

    /// Sends the browser on once the step was taken, or says why it was not.
    fn on_to(&self, guest: &Guest, rest: &str, taken: Result<(), flow::Error>) -> HttpResponse {
        match taken {
            Ok(()) => Pages::see_other(self.pages.path(guest.elicitation().id()) + rest),
            Err(error) => self.pages.failed(error, &guest.client().name),
        }
    }
}

/// As much as the form may have if every field is full.
fn form_limit(request: &Request) -> usize {
    let Request::Secret(request) = request else { return BARE_FORM };
    let field = |field: &Field| field.name.len() + PER_CHARACTER * field.max_length + 2;
    BARE_FORM + request.fields().iter().map(field).sum::<usize>()
}
