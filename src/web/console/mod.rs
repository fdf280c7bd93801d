//! The console: what operators see, and revoke. Every page works without scripts; searches and changes are forms that are
//! posted, so that an address tells nothing of what somebody looks for.
//!
//! [`sign_in`] lets operators in; [`links`] and [`kept`] show what there is, [`webhooks`] what nobody took; [`revoke`] ends one
//! or many. Never an outcome.

pub mod export;
pub mod kept;
pub mod links;
pub mod revoke;
pub mod sign_in;
pub mod view;
pub mod webhooks;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::{FromRequest as _, HttpRequest, HttpResponse, web};

use self::view::Shell;
use super::Site;
use super::extract::browser::with_browser;
use super::extract::form::{Form, is_same_origin};
use super::pages::Pages;
use super::pages::text::Notice;
use crate::domain::Invalid;
use crate::flow::console::sign_in::Attendant;
use crate::flow::{Error, Gate};

/// The routes of the console.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/console", web::get().to(links::home))
        .route("/console/key/signin", web::post().to(sign_in::by_key))
        .route("/console/signin", web::post().to(sign_in::elsewhere))
        .route("/console/leave/{departure}", web::get().to(sign_in::leave))
        .route("/console/sign-in/{what}", web::get().to(sign_in::came_to))
        .route("/console/signout", web::post().to(sign_in::out))
        .route("/console/links", web::post().to(links::search))
        .route("/console/links/{query}", web::get().to(links::found))
        .route("/console/links/{query}/after/{after}", web::get().to(links::found))
        .route("/console/links/{query}/export.{format}", web::get().to(export::links))
        .route("/console/link/{id}", web::get().to(links::one))
        .route("/console/link/{id}/revoke", web::post().to(revoke::one))
        .route("/console/kept", web::get().to(kept::home))
        .route("/console/kept", web::post().to(kept::search))
        .route("/console/kept/{query}", web::get().to(kept::found))
        .route("/console/kept/{query}/after/{after}", web::get().to(kept::found))
        .route("/console/kept/{query}/export.{format}", web::get().to(export::kept))
        .route("/console/revoke/{query}", web::get().to(revoke::ask))
        .route("/console/revoke/{query}", web::post().to(revoke::begin))
        .route("/console/revocation/{bulk}", web::get().to(revoke::progress))
        .route("/console/revocation/{bulk}/{what}", web::post().to(revoke::decide))
        .route("/console/webhooks", web::get().to(webhooks::dead))
        .route("/console/webhooks/after/{after}", web::get().to(webhooks::dead))
        .route("/console/webhooks/retry", web::post().to(webhooks::retry));
}

/// As much as a form of the console may have.
const FORM: usize = 16 * 1024;

/// An operator at a page of the console, and what its handler needs.
pub struct Counter {
    gate: web::Data<Gate>,
    pages: web::Data<Pages>,
    site: web::Data<Site>,
    request: HttpRequest,
    attendant: Attendant,
}

impl Counter {
    /// The operator who asks for a page, or the page to sign in.
    async fn open(request: &HttpRequest) -> Result<Self, HttpResponse> {
        let parts = <(web::Data<Gate>, web::Data<Pages>, web::Data<Site>)>::extract(request).await;
        let (gate, pages, site) = parts.map_err(|error| error.error_response())?;
        if !gate.console.is_open() {
            return Err(pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", ""));
        }
        match with_browser(request, async |browser| gate.attendant(browser).await).await {
            Ok(Some(attendant)) => Ok(Self { gate, pages, site, request: request.clone(), attendant }),
            Ok(None) => Err(sign_in::page(&gate, &pages, StatusCode::UNAUTHORIZED, None)),
            Err(error) => Err(pages.failed(error, "")),
        }
    }

    /// The same, with the form that they sent, which is ours. `place` is what it is about.
    async fn receive(
        request: &HttpRequest,
        payload: web::Payload,
        place: &str,
    ) -> Result<(Self, Form), HttpResponse> {
        let counter = Self::open(request).await?;
        let form = read(request, &counter.pages, payload.into_inner()).await?;
        let same_origin = is_same_origin(request, &counter.site.public_url);
        let (attendant, proof) = (Some(&counter.attendant), form.proof());
        let checked = counter.gate.check_console_form(attendant, place, proof.as_ref(), same_origin);
        checked.map_err(|error| counter.failed(error))?;
        Ok((counter, form))
    }

    /// A part of the path.
    fn part(&self, name: &str) -> &str {
        self.request.match_info().get(name).unwrap_or_default()
    }

    /// A part of the path that is an id; an address with anything else leads nowhere.
    fn id<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Error> {
        self.request.match_info().get(name).map(|text| text.parse().map_err(|_| Error::NotFound)).transpose()
    }

    /// What surrounds a page, whose forms are about `place`.
    fn shell(&self, place: &str) -> Shell<'_> {
        Shell {
            base: self.pages.console(),
            name: &self.attendant.name,
            revokes: self.attendant.operator.revoker().is_ok(),
            out: self.gate.console_proof(Some(&self.attendant), sign_in::OUT),
            proof: self.gate.console_proof(Some(&self.attendant), place),
        }
    }

    /// Sends the browser on within the console.
    fn on_to(&self, path: &str) -> HttpResponse {
        Pages::see_other(self.pages.console() + path)
    }

    /// What the operator reads when something was not done.
    fn failed(&self, error: Error) -> HttpResponse {
        match error {
            Error::NotRevoker => self.say(
                StatusCode::FORBIDDEN,
                "You cannot do that",
                "You may look at everything here and not revoke. Somebody with the role revoker can.",
            ),
            Error::Invalid(Invalid { field, problem }) => {
                self.say(StatusCode::UNPROCESSABLE_ENTITY, "That is not complete", &format!("The {field} {problem}. Go back and mend it."))
            }
            Error::NotFound => self.say(
                StatusCode::NOT_FOUND,
                "There is nothing here",
                "A link that has been erased is not shown any more, and a search is forgotten after an hour. Search again.",
            ),
            Error::Refused(refusal) => {
                let problem = super::problem::Problem::from(refusal);
                self.say(problem.status(), "That was not done", problem.detail())
            }
            other => self.pages.failed(other, ""),
        }
    }

    /// A page that says one thing.
    fn say(&self, status: StatusCode, heading: &str, body: &str) -> HttpResponse {
        Pages::html(
            status,
            &view::SayPage { frame: self.pages.frame(), shell: self.shell(""), heading, body },
        )
    }
}

async fn read(request: &HttpRequest, pages: &Pages, mut payload: Payload) -> Result<Form, HttpResponse> {
    Form::read(request, &mut payload, FORM).await.map_err(|problem| pages.problem(&problem))
}
