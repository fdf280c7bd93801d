//! The page of a payment: the button to the processor, and the way back.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::Pages;
use super::open::arrive;
use super::sign_in::{cookie, set};
use super::submit::Desk;
use super::text::{Notice, Pay, Phrase};
use super::view::{Asked, Frame};
use crate::domain::Elicitation;
use crate::domain::order::Late;
use crate::domain::payment::PaymentRequest;
use crate::flow::Gate;
use crate::flow::departure::BROWSER_COOKIE;
use crate::flow::open::Guest;
use crate::flow::pay::{NotPaid, Paying};
use crate::upstream::payment::Settings;
use crate::web::extract::browser::with_browser;

/// The page of a payment.
#[derive(Template)]
#[template(path = "pay.html")]
pub(super) struct PayPage<'a> {
    frame: Frame<'a>,
    words: &'a Pay,
    title: String,
    asked: Asked<'a>,
    amount: String,
    currency: &'static str,
    livemode: bool,
    description: &'a str,
    payee: &'a str,
    provider: &'a str,
    /// Whether what is paid too late is paid back.
    refunds: bool,
    /// Whether the person can pay, or pay again: not while it is looked into what they paid.
    payable: bool,
    /// What went wrong the last time, and in more words.
    error: Option<(&'a Phrase, String)>,
}

impl<'a> PayPage<'a> {
    pub(super) fn new(
        frame: Frame<'a>,
        elicitation: &Elicitation,
        (request, processor): (&'a PaymentRequest, Option<&'a Settings>),
        asked: Asked<'a>,
        error: Option<&Phrase>,
    ) -> Self {
        let words = &frame.text.pay;
        let provider = processor.map_or(request.provider.as_str(), |processor| processor.name.as_str());
        let amount = request.money.to_string();
        let payable = !elicitation.is_unclear();
        let error = if payable {
            error.map(|error| (&words.error_title, error))
        } else {
            Some((&words.unclear_title, &words.unclear))
        };
        Self {
            title: words.title.with("client", asked.client).with("amount", &amount).to_string(),
            currency: request.money.currency.code(),
            livemode: processor.is_some_and(|processor| processor.livemode),
            description: &request.description,
            payee: processor.and_then(|processor| processor.payee.as_deref()).unwrap_or(asked.client),
            refunds: processor.is_none_or(|processor| processor.late == Late::Refund),
            error: error.map(|(title, error)| (title, error.with("provider", provider).to_string())),
            amount,
            provider,
            payable,
            words,
            asked,
            frame,
        }
    }
}

/// `POST /e/{id}/pay`: the person goes on to the processor.
pub async fn begin(desk: Desk, payload: web::Payload) -> HttpResponse {
    let (guest, _) = match desk.receive(payload).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let (gate, pages, request) = (&desk.gate, &desk.pages, &desk.request);
    let begun = with_browser(request, async |browser| gate.pay(&guest, browser).await).await;
    let page = pages.path(guest.elicitation().id());
    match begun {
        Ok(Paying::Leaves { departure, browser }) => {
            let mut response = Pages::see_other(format!("{page}/leave/{departure}"));
            set(&mut response, &cookie(BROWSER_COOKIE, browser));
            response
        }
        Ok(Paying::Done) => Pages::see_other(page + "/done"),
        Ok(Paying::Not(why)) => Pages::see_other(page + rest(why)),
        Err(error) => pages.failed(error, &guest.client().name),
    }
}

/// `GET /payment/{id}/return`: the browser is back from the processor. Whatever it brings is not read.
pub async fn returned(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let guest = match arrive(&gate, &pages, &request).await {
        Ok(guest) => guest,
        Err(response) => return response,
    };
    let page = pages.path(guest.elicitation().id());
    match gate.finish_payment(&guest).await {
        Ok(None) => Pages::see_other(page + "/done"),
        Ok(Some(why)) => Pages::see_other(page + rest(why)),
        Err(error) => pages.failed(error, &guest.client().name),
    }
}

/// `GET /e/{id}/payment/{what}`: the page again, with why it is not paid.
pub async fn came_to(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let words = &pages.text.pay;
    let what = request.match_info().get("what").unwrap_or_default();
    let (status, error) = match what {
        "unavailable" => (StatusCode::SERVICE_UNAVAILABLE, &words.unavailable),
        "unknown" => (StatusCode::SERVICE_UNAVAILABLE, &words.unknown),
        "not-paid" => (StatusCode::OK, &words.not_paid),
        "unclear" => (StatusCode::CONFLICT, &words.unclear),
        _ => return pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", ""),
    };
    match arrive(&gate, &pages, &request).await {
        // What the processor hung on the way back does not stay in the address.
        Ok(guest) if !request.query_string().is_empty() => {
            Pages::see_other(format!("{}/payment/{what}", pages.path(guest.elicitation().id())))
        }
        Ok(guest) if is_open(&guest) => pages.pay(&gate, &guest, status, Some(error)),
        Ok(guest) => pages.standing(&gate, &guest),
        Err(response) => response,
    }
}

fn is_open(guest: &Guest) -> bool {
    guest.elicitation().state().name().is_live() && !guest.elicitation().is_processing()
}

const fn rest(why: NotPaid) -> &'static str {
    match why {
        NotPaid::Unavailable => "/payment/unavailable",
        NotPaid::Unknown => "/payment/unknown",
        NotPaid::Open => "/payment/not-paid",
        NotPaid::Unclear => "/payment/unclear",
    }
}
