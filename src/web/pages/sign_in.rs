//! Signing in: the button on our page, the page on the way out, and the ways back.

use std::borrow::Cow;

use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpRequest, HttpResponse, web};
use form_urlencoded::parse;

use super::open::arrive_or;
use super::submit::{BARE_FORM, Desk};
use super::text::Notice;
use super::view::LeavePage;
use super::{Pages, page_of};
use crate::flow::departure::BROWSER_COOKIE;
use crate::flow::page::Page;
use crate::flow::sign_in::{Back, Begun};
use crate::flow::{Error, Gate};
use crate::identity::{Reason, Returned, SignInError};
use crate::web::extract::browser::with_browser;
use crate::web::extract::form::{Form, is_same_origin};
use crate::web::problem::Problem;

/// `POST /e/{id}/signin`: the person asks to sign in, or, with `again`, to do so as somebody else.
pub async fn begin(desk: Desk, payload: web::Payload) -> HttpResponse {
    let Desk { gate, pages, site, request } = desk;
    let Some(page) = page_of(&request) else { return pages.problem(&Problem::not_found()) };
    let form = match Form::read(&request, &mut payload.into_inner(), BARE_FORM).await {
        Ok(form) => form,
        Err(problem) => return pages.problem(&problem),
    };
    let (proof, again) = (form.proof(), form.value("again").is_some());
    let same_origin = is_same_origin(&request, &site.public_url);
    let begun = with_browser(&request, async |browser| {
        gate.begin_sign_in(page.clone(), browser, proof.as_ref(), same_origin, again).await
    });
    let begun = begun.await;
    let page = pages.page_path(&page);
    match begun {
        Ok(Begun::SignedIn) => Pages::see_other(page),
        Ok(Begun::Failed(error)) => Pages::see_other(format!("{page}/sign-in/{}", word(error))),
        Ok(Begun::Leaves { departure, browser }) => {
            let mut response = Pages::see_other(format!("{page}/leave/{departure}"));
            set(&mut response, &cookie(BROWSER_COOKIE, browser));
            response
        }
        Err(error) => pages.failed(error, ""),
    }
}

/// `GET /e/{id}/leave/{departure}`: the last page of ours. It leads on by itself; a form could not, since its
/// redirects may not leave (`form-action`).
pub async fn leave(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    match page_of(&request) {
        Some(page) => leave_from(&gate, &pages, &request, page).await,
        None => pages.problem(&Problem::not_found()),
    }
}

/// The same, from this page.
pub(in crate::web) async fn leave_from(
    gate: &Gate,
    pages: &Pages,
    request: &HttpRequest,
    page: Page,
) -> HttpResponse {
    let departure = request.match_info().get("departure").unwrap_or_default();
    match with_browser(request, async |browser| gate.leave(&page, departure, browser).await).await {
        Ok(Some(leaving)) => {
            let page = LeavePage::new(pages.frame(), &leaving, pages.page_path(&page));
            Pages::html(StatusCode::OK, &page)
        }
        // They have been there.
        Ok(None) => Pages::see_other(pages.page_path(&page)),
        Err(Error::NotFound) => pages.notice(StatusCode::FORBIDDEN, Notice::SignInStray, "", ""),
        Err(error) => pages.failed(error, ""),
    }
}

/// `GET /signin/{source}/callback`: the browser is back from the issuer.
pub async fn callback(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let query = Query::of(&request);
    let (Some(query), Some(source)) = (query, request.match_info().get("source")) else {
        return pages.notice(StatusCode::BAD_REQUEST, Notice::SignInStray, "", "");
    };
    let returned = Returned { code: query.get("code"), iss: query.get("iss"), error: query.get("error") };
    let state = query.get("state").unwrap_or_default();
    let back =
        with_browser(&request, async |browser| gate.finish_sign_in(source, state, returned, browser).await);
    came_back(&pages, back.await)
}

/// `GET /handoff/{handoff}/return`: the browser is back from the MCP server.
pub async fn handed_back(
    gate: web::Data<Gate>,
    pages: web::Data<Pages>,
    request: HttpRequest,
) -> HttpResponse {
    let query = Query::of(&request);
    let (Some(query), Some(handoff)) = (query, request.match_info().get("handoff")) else {
        return pages.notice(StatusCode::BAD_REQUEST, Notice::SignInStray, "", "");
    };
    let ticket = query.get("ticket").unwrap_or_default();
    let back = with_browser(&request, async |browser| gate.finish_handoff(handoff, ticket, browser).await);
    came_back(&pages, back.await)
}

/// `GET /e/{id}/sign-in/{what}`: why a sign-in did not come about, to somebody who is not signed in.
pub async fn came_to(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let otherwise = match request.match_info().get("what") {
        Some("declined") => (StatusCode::FORBIDDEN, Notice::SignInDeclined),
        Some("unavailable") => (StatusCode::SERVICE_UNAVAILABLE, Notice::SignInUnavailable),
        Some("failed") => (StatusCode::FORBIDDEN, Notice::SignInFailed),
        _ => return pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", ""),
    };
    if let Some(page @ Page::Mine(_)) = page_of(&request) {
        let (status, notice) = otherwise;
        return pages.sign_in_again(&gate, &page, status, notice);
    }
    let mut response = match arrive_or(&gate, &pages, &request, Some(otherwise)).await {
        Ok(guest) => return Pages::see_other(pages.path(guest.elicitation().id())),
        Err(response) => response,
    };
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, 5.into());
    }
    response
}

/// Sends the browser on to a URL that tells nothing of what it brought back.
fn came_back(pages: &Pages, back: Result<Option<Back>, Error>) -> HttpResponse {
    match back {
        Ok(Some(Back { page, session: Ok((session, name)) })) => {
            let mut response = Pages::see_other(pages.page_path(&page));
            set(&mut response, &cookie(session, name));
            response
        }
        // Another browser is not told which link it was.
        Ok(None | Some(Back { session: Err(SignInError::Refused(Reason::OtherBrowser)), .. })) => {
            pages.notice(StatusCode::FORBIDDEN, Notice::SignInStray, "", "")
        }
        Ok(Some(Back { page, session: Err(error) })) => {
            Pages::see_other(format!("{}/sign-in/{}", pages.page_path(&page), word(error)))
        }
        Err(error) => pages.failed(error, ""),
    }
}

pub(in crate::web) const fn word(error: SignInError) -> &'static str {
    match error {
        SignInError::Unavailable(_) => "unavailable",
        SignInError::Refused(Reason::Denied) => "declined",
        SignInError::Refused(Reason::NoOperator) => "no-operator",
        SignInError::Refused(_) => "failed",
    }
}

/// A cookie for the whole host and for nobody else, until the browser is closed.
pub(in crate::web) fn cookie<'a>(
    name: impl Into<Cow<'a, str>>,
    value: impl Into<Cow<'a, str>>,
) -> Cookie<'a> {
    Cookie::build(name, value).path("/").secure(true).http_only(true).same_site(SameSite::Lax).finish()
}

pub(in crate::web) fn set(response: &mut HttpResponse, cookie: &Cookie<'_>) {
    if let Err(error) = response.add_cookie(cookie) {
        tracing::error!(%error, "a cookie could not be set");
    }
}

/// The parameters of a return, each of which may be there once.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        let pairs = parse(request.query_string().as_bytes());
        Self::once_each(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())))
    }

    pub(super) fn of_form(form: &Form) -> Option<Self> {
        Self::once_each(form.entries().map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    fn once_each(pairs: impl Iterator<Item = (String, String)>) -> Option<Self> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, value) in pairs {
            if found.iter().any(|(other, _)| *other == name) {
                return None;
            }
            found.push((name, value));
        }
        Some(Self(found))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}
