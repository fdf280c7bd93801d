//! The page that plays a payment processor's, for development (`processor = "manual"`). It knows nothing of who is there, as a
//! processor's page does not.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::Pages;
use super::submit::{BARE_FORM, Desk};
use super::text::{Manual, Notice};
use super::view::Frame;
use crate::flow::Gate;
use crate::flow::form::FormProof;
use crate::web::extract::form::{Form, is_same_origin};

/// The page.
#[derive(Template)]
#[template(path = "manual.html")]
struct ManualPage<'a> {
    frame: Frame<'a>,
    words: &'a Manual,
    amount: String,
    description: &'a str,
    proof: FormProof,
}

/// `GET /manual/{processor}/{order}`: the page.
pub async fn page(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let (processor, order) = place(&request);
    let Some((order, proof)) = gate.manual_order(processor, order) else {
        return pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", "");
    };
    let (words, amount) = (&pages.text.manual, order.money.to_string());
    let frame = pages.frame();
    Pages::html(StatusCode::OK, &ManualPage { frame, words, amount, description: &order.description, proof })
}

/// `POST /manual/{processor}/{order}`: one of its buttons.
pub async fn decide(desk: Desk, payload: web::Payload) -> HttpResponse {
    let Desk { gate, pages, site, request } = desk;
    let form = match Form::read(&request, &mut payload.into_inner(), BARE_FORM).await {
        Ok(form) => form,
        Err(problem) => return pages.problem(&problem),
    };
    let (processor, order) = place(&request);
    let same_origin = is_same_origin(&request, &site.public_url);
    let pays = form.value("pays") == Some("yes");
    match gate.decide_manually(processor, order, form.proof().as_ref(), same_origin, pays) {
        Ok(to) => Pages::see_other(to),
        Err(error) => pages.failed(error, ""),
    }
}

fn place(request: &HttpRequest) -> (&str, &str) {
    let part = |name| request.match_info().get(name).unwrap_or_default();
    (part("processor"), part("order"))
}
