//! The pages: what people see.
//!
//! [`open`] shows a link's page to whoever came by it; [`sign_in`] sends them to where they say who they are; [`submit`]
//! takes the page's forms. [`Pages`] renders, and holds the one table from what went wrong to what the person reads.

pub mod authorize;
pub mod manual;
pub mod mine;
pub mod open;
pub mod pay;
pub mod sign_in;
pub mod submit;
pub mod text;
pub(super) mod view;

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _, web};
use askama::Template;

use self::authorize::AuthorizePage;
use self::mine::DoorsPage;
use self::pay::PayPage;
use self::text::{Notice, Phrase, Text, TextError};
use self::view::{Asked, AskedParts, CodePage, DonePage, Entered, Frame, NoticePage, SecretPage, SignInForm};
use super::Site;
use super::assets::Assets;
use super::problem::Problem;
use crate::domain::order::{Order, Stage};
use crate::domain::secret::FieldError;
use crate::domain::{Code, ElicitationId, Refusal, Request, StateName};
use crate::flow::open::{Arrival, Guest};
use crate::flow::page::{Door, Page};
use crate::flow::{Client, Error, Gate};

/// The routes of the pages.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/e/{id}")
                .route(web::get().to(open::page))
                .route(web::head().to(open::page))
                .default_service(web::to(not_found)),
        )
        .service(
            web::resource("/e/{id}/done")
                .route(web::get().to(open::done))
                .route(web::head().to(open::done))
                .default_service(web::to(not_found)),
        )
        .route("/e/{id}/secret", web::post().to(submit::secret))
        .route("/e/{id}/authorize", web::post().to(authorize::begin))
        .route("/e/{id}/authorize/{what}", web::get().to(authorize::came_to))
        .route("/oauth/callback/{provider}", web::get().to(authorize::callback))
        .route("/oauth/callback/{provider}", web::post().to(authorize::posted))
        .route("/e/{id}/pay", web::post().to(pay::begin))
        .route("/e/{id}/payment/{what}", web::get().to(pay::came_to))
        .route("/payment/{id}/return", web::get().to(pay::returned))
        .route("/manual/{processor}/{order}", web::get().to(manual::page))
        .route("/manual/{processor}/{order}", web::post().to(manual::decide))
        .route("/mine", web::get().to(mine::doors))
        .route("/mine/{door}", web::get().to(mine::mine))
        .route("/mine/{door}/delete", web::post().to(mine::delete))
        .route("/mine/{door}/signin", web::post().to(sign_in::begin))
        .route("/mine/{door}/leave/{departure}", web::get().to(sign_in::leave))
        .route("/mine/{door}/sign-in/{what}", web::get().to(sign_in::came_to))
        .route("/e/{id}/decline", web::post().to(submit::decline))
        .route("/e/{id}/extend", web::post().to(submit::extend))
        .route("/e/{id}/signin", web::post().to(sign_in::begin))
        .route("/e/{id}/leave/{departure}", web::get().to(sign_in::leave))
        .route("/e/{id}/sign-in/{what}", web::get().to(sign_in::came_to))
        .route("/signin/{source}/callback", web::get().to(sign_in::callback))
        .route("/handoff/{handoff}/return", web::get().to(sign_in::handed_back))
        .route("/static/{name}", web::get().to(asset));
}

/// What every unknown path gets.
pub async fn not_found(pages: web::Data<Pages>) -> HttpResponse {
    pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", "")
}

async fn asset(pages: web::Data<Pages>, name: web::Path<String>) -> HttpResponse {
    match pages.assets.find(&name) {
        None => pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", ""),
        Some(asset) => HttpResponse::Ok()
            .insert_header((CONTENT_TYPE, asset.media_type))
            .insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"))
            .body(asset.content),
    }
}

/// Renders the pages.
pub struct Pages {
    text: Text,
    assets: Assets,
    style: String,
    script: String,
    prefix: String,
    /// Where people see what is kept for them.
    mine: String,
}

impl Pages {
    /// The pages of a site, in English.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn new(site: &Site) -> Result<Self, TextError> {
        let assets = Assets::new();
        Ok(Self {
            text: Text::english()?,
            style: assets.style.path(&site.prefix),
            script: assets.script.path(&site.prefix),
            prefix: site.prefix.clone(),
            mine: format!("{}/mine", site.public_url.as_str().trim_end_matches('/')),
            assets,
        })
    }

    /// The path of an elicitation's page.
    fn path(&self, id: ElicitationId) -> String {
        format!("{}/e/{id}", self.prefix)
    }

    /// The path of the operators' console.
    pub(super) fn console(&self) -> String {
        format!("{}/console", self.prefix)
    }

    /// The path of a page that people sign in on.
    fn page_path(&self, page: &Page) -> String {
        match page {
            Page::Link(id) => self.path(*id),
            Page::Mine(door) => format!("{}/mine/{door}", self.prefix),
            Page::Console => self.console(),
        }
    }

    /// The path to which a provider sends browsers back.
    fn callback_path(&self, provider: &str) -> String {
        format!("{}/oauth/callback/{provider}", self.prefix)
    }

    /// What somebody reads whose sign-in to their own page did not come about.
    fn sign_in_again(&self, gate: &Gate, page: &Page, status: StatusCode, notice: Notice) -> HttpResponse {
        let proof = gate.fresh_proof(page);
        let form = SignInForm { page: self.page_path(page), proof, again: false };
        self.notice_with(status, notice, "Sidegate", "", Some(form))
    }

    /// Which of several doors?
    fn doors(&self, doors: &[Door]) -> HttpResponse {
        let doors = doors.iter().map(|door| (self.page_path(&Page::Mine(door.clone())), door)).collect();
        Self::html(StatusCode::OK, &DoorsPage::new(self.frame(), doors))
    }

    /// Sends the browser on to a page of ours.
    pub(super) fn see_other(path: String) -> HttpResponse {
        HttpResponse::SeeOther().insert_header((LOCATION, path)).finish()
    }

    pub(super) fn frame(&self) -> Frame<'_> {
        Frame { text: &self.text, style: &self.style, script: &self.script }
    }

    pub(super) fn html(status: StatusCode, page: &impl Template) -> HttpResponse {
        match page.render() {
            Ok(html) => HttpResponse::build(status).content_type("text/html; charset=utf-8").body(html),
            Err(_) => HttpResponse::InternalServerError().finish(),
        }
    }

    /// A page that says one thing.
    pub(super) fn notice(
        &self,
        status: StatusCode,
        notice: Notice,
        client: &str,
        person: &str,
    ) -> HttpResponse {
        self.notice_with(status, notice, client, person, None)
    }

    /// A page that says one thing, and has a button to sign in.
    fn notice_with(
        &self,
        status: StatusCode,
        notice: Notice,
        client: &str,
        person: &str,
        sign_in: Option<SignInForm>,
    ) -> HttpResponse {
        match NoticePage::new(self.frame(), notice, client, person, sign_in) {
            Some(page) => Self::html(status, &page),
            None => HttpResponse::build(status).finish(),
        }
    }

    /// The page for how a guest's elicitation stands: the form, or what it came to.
    fn standing(&self, gate: &Gate, guest: &Guest) -> HttpResponse {
        let client = guest.client();
        let state = guest.elicitation().state().name();
        if guest.is_too_late() && (!state.is_terminal() || state == StateName::Claimed) {
            return self.answered_elsewhere(client);
        }
        if let Some(code) = guest.elicitation().awaits_code() {
            return self.code(code, gate.now().until(guest.elicitation().expires_at()), client);
        }
        match state {
            StateName::InProgress if guest.elicitation().is_processing() => {
                self.notice(StatusCode::OK, Notice::PaymentProcessing, &client.name, "")
            }
            StateName::Pending | StateName::InProgress => {
                self.form(gate, guest, StatusCode::OK, &[], &|_| None)
            }
            StateName::Completed | StateName::Claimed => {
                Self::html(StatusCode::OK, &DonePage::new(self.frame(), guest.elicitation(), client))
            }
            // Whoever has paid wants to know about their money first.
            ended => match paid_back(guest) {
                Some(notice) => self.notice(StatusCode::GONE, notice, &client.name, ""),
                None => self.ended(ended, &client.name),
            },
        }
    }

    /// The code that must go back, for the browser that it is for.
    fn code(&self, code: &Code, left: Duration, client: &Client) -> HttpResponse {
        Self::html(StatusCode::OK, &CodePage::new(self.frame(), code, left, client))
    }

    fn answered_elsewhere(&self, client: &Client) -> HttpResponse {
        self.notice(StatusCode::CONFLICT, Notice::AnsweredElsewhere, &client.name, "")
    }

    fn ended(&self, state: StateName, client: &str) -> HttpResponse {
        let (status, notice) = match state {
            // The person knows: it was they who said so.
            StateName::Declined => (StatusCode::OK, Notice::Declined),
            StateName::Expired => (StatusCode::GONE, Notice::Expired),
            StateName::Cancelled => (StatusCode::GONE, Notice::Cancelled),
            StateName::Revoked => (StatusCode::GONE, Notice::Revoked),
            StateName::Failed
            | StateName::Pending
            | StateName::InProgress
            | StateName::Completed
            | StateName::Claimed => (StatusCode::GONE, Notice::Failed),
        };
        self.notice(status, notice, client, "")
    }

    /// The form of a secret, or the page of whatever else is asked.
    fn form<'a>(
        &'a self,
        gate: &'a Gate,
        guest: &'a Guest,
        status: StatusCode,
        errors: &'a [FieldError],
        value: &'a dyn Fn(&str) -> Option<&'a str>,
    ) -> HttpResponse {
        let elicitation = guest.elicitation();
        match &elicitation.terms().request {
            Request::Secret(request) => {
                let asked = self.asked(gate, guest);
                let entered = Entered { errors, value };
                Self::html(status, &SecretPage::new(self.frame(), elicitation, request, asked, &entered))
            }
            Request::OAuth(_) => self.authorize(gate, guest, status, None),
            Request::Payment(_) => self.pay(gate, guest, status, None),
        }
    }

    /// The page of an authorization.
    fn authorize(
        &self,
        gate: &Gate,
        guest: &Guest,
        status: StatusCode,
        error: Option<&Phrase>,
    ) -> HttpResponse {
        let elicitation = guest.elicitation();
        let Request::OAuth(request) = &elicitation.terms().request else {
            return self.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", "");
        };
        let provider = gate.providers.get(&request.provider).map(|provider| provider.settings());
        let asked = self.asked(gate, guest);
        let page = AuthorizePage::new(self.frame(), elicitation, (request, provider), asked, error);
        Self::html(status, &page)
    }

    /// The page of a payment.
    fn pay(&self, gate: &Gate, guest: &Guest, status: StatusCode, error: Option<&Phrase>) -> HttpResponse {
        let elicitation = guest.elicitation();
        let Request::Payment(request) = &elicitation.terms().request else {
            return self.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", "");
        };
        let processor = gate.payments.get(&request.provider).map(|payment| &payment.settings);
        let asked = self.asked(gate, guest);
        let page = PayPage::new(self.frame(), elicitation, (request, processor), asked, error);
        Self::html(status, &page)
    }

    fn asked<'a>(&'a self, gate: &Gate, guest: &'a Guest) -> Asked<'a> {
        let parts = AskedParts {
            page: self.path(guest.elicitation().id()),
            client: guest.client(),
            person: &guest.person().name,
            can_switch: guest.signed_in_here(),
            proof: gate.form_proof(guest),
            can_extend: guest.theirs().can_extend(&gate.spans),
            now: gate.now(),
            mine: self.mine.clone(),
        };
        Asked::new(&self.text, guest.elicitation(), parts)
    }

    /// Whoever came, or the page for those who may not go on. `otherwise` is what somebody reads who is not signed in.
    #[expect(clippy::result_large_err, reason = "either way it is the one answer to this request")]
    fn turned_away(
        &self,
        id: ElicitationId,
        arrival: Arrival,
        otherwise: Option<(StatusCode, Notice)>,
    ) -> Result<Box<Guest>, HttpResponse> {
        let form = |proof, again| SignInForm { page: self.path(id), proof, again };
        match arrival {
            Arrival::Guest(guest) => Ok(guest),
            Arrival::WrongPerson { client, name, sign_in } => {
                let form = sign_in.map(|proof| form(proof, true));
                let (status, notice) = (StatusCode::FORBIDDEN, Notice::WrongPerson);
                Err(self.notice_with(status, notice, &client.name, &name, form))
            }
            Arrival::Nobody { client, sign_in } => {
                let notice = match client.identity.word() {
                    "loopback" => Notice::SignInLoopback,
                    _ if sign_in.is_some() => Notice::SignInHere,
                    _ => Notice::SignIn,
                };
                // Where there is no button to sign in, nothing else is to be said.
                let otherwise = otherwise.filter(|_| sign_in.is_some());
                let (status, notice) = otherwise.unwrap_or((StatusCode::UNAUTHORIZED, notice));
                let form = sign_in.map(|proof| form(proof, false));
                Err(self.notice_with(status, notice, &client.name, "", form))
            }
        }
    }

    /// What the person reads when a step was not taken.
    pub(super) fn failed(&self, error: Error, client: &str) -> HttpResponse {
        match error {
            Error::Refused(Refusal::Ended(state)) => self.ended(state, client),
            other => self.problem(&other.into()),
        }
    }

    /// What the person reads for a problem, by its code.
    #[must_use]
    pub fn problem(&self, problem: &Problem) -> HttpResponse {
        let notice = match problem.code() {
            "not_found" => Notice::NotFound,
            "form_refused" => Notice::FormRefused,
            "wrong_person" => Notice::WrongPerson,
            "no_more_time" => Notice::NoMoreTime,
            "body_too_large" => Notice::TooLarge,
            "body_timeout" => Notice::TooSlow,
            "too_many_requests" => Notice::TooMany,
            "misdirected_request" => Notice::Misdirected,
            "unavailable" => Notice::Unavailable,
            _ => Notice::BadRequest,
        };
        let mut page = self.notice(problem.status(), notice, "", "");
        if let Some(retry_after) = problem.error_response().headers().get(RETRY_AFTER) {
            page.headers_mut().insert(RETRY_AFTER, retry_after.clone());
        }
        page
    }
}

/// What becomes of what was paid for an elicitation that has ended, if anything was.
fn paid_back(guest: &Guest) -> Option<Notice> {
    let spoiled = |order: &&Order| !matches!(order.stage, Stage::Closed) && !order.is_payable();
    Some(match guest.elicitation().orders().iter().rfind(spoiled)?.stage {
        Stage::Refunded(..) => Notice::PaymentRefunded,
        Stage::Refunding(..) => Notice::PaymentRefunding,
        _ => Notice::PaymentHeld,
    })
}

/// The page that a path below it belongs to.
fn page_of(request: &HttpRequest) -> Option<Page> {
    let path = request.match_info();
    match (path.get("id"), path.get("door")) {
        (Some(id), _) => id.parse().ok().map(Page::Link),
        (None, Some(door)) => door.parse().ok().map(Page::Mine),
        (None, None) => None,
    }
}

/// The elicitation id in the path of a page.
fn page_id(request: &HttpRequest) -> Result<ElicitationId, Problem> {
    let id = request.match_info().get("id").and_then(|text| text.parse().ok());
    id.ok_or_else(Problem::not_found)
}
