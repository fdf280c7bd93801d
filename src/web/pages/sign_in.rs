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
use super::{Pages, page_id};
use crate::flow::sign_in::{BROWSER_COOKIE, Back, Begun};
use crate::flow::{Error, Gate};
use crate::identity::{Reason, Returned, SignInError};
use crate::web::extract::browser::with_browser;
use crate::web::extract::form::{Form, is_same_origin};

/// `POST /e/{id}/signin`: the person asks to sign in, or, with `again`, to do so as somebody else.
pub async fn begin(desk: Desk, payload: web::Payload) -> HttpResponse {
    let Desk { gate, pages, site, request } = desk;
    let id = match page_id(&request) {
        Ok(id) => id,
        Err(problem) => return pages.problem(&problem),
    };
    let form = match Form::read(&request, &mut payload.into_inner(), BARE_FORM).await {
        Ok(form) => form,
        Err(problem) => return pages.problem(&problem),
    };
    let (proof, again) = (form.proof(), form.value("again").is_some());
    let same_origin = is_same_origin(&request, &site.public_url);
    let begun = with_browser(&request, async |browser| {
        gate.begin_sign_in(id, browser, proof.as_ref(), same_origin, again).await
    });
    let page = pages.path(id);
    match begun.await {
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
    let id = match page_id(&request) {
        Ok(id) => id,
        Err(problem) => return pages.problem(&problem),
    };
    let departure = request.match_info().get("departure").unwrap_or_default();
    match with_browser(&request, async |browser| gate.leave(id, departure, browser).await).await {
        Ok(Some(to)) => Pages::html(StatusCode::OK, &LeavePage::new(pages.frame(), &to, pages.path(id))),
        // They have been there.
        Ok(None) => Pages::see_other(pages.path(id)),
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
        Ok(Some(Back { elicitation, session: Ok((session, name)) })) => {
            let mut response = Pages::see_other(pages.path(elicitation));
            set(&mut response, &cookie(session, name));
            response
        }
        // Another browser is not told which link it was.
        Ok(None | Some(Back { session: Err(SignInError::Refused(Reason::OtherBrowser)), .. })) => {
            pages.notice(StatusCode::FORBIDDEN, Notice::SignInStray, "", "")
        }
        Ok(Some(Back { elicitation, session: Err(error) })) => {
            Pages::see_other(format!("{}/sign-in/{}", pages.path(elicitation), word(error)))
        }
        Err(error) => pages.failed(error, ""),
    }
}

const fn word(error: SignInError) -> &'static str {
    match error {
        SignInError::Unavailable(_) => "unavailable",
        SignInError::Refused(Reason::Denied) => "declined",
        SignInError::Refused(_) => "failed",
    }
}

/// A cookie for the whole host and for nobody else, until the browser is closed.
pub(super) fn cookie<'a>(name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) -> Cookie<'a> {
    Cookie::build(name, value).path("/").secure(true).http_only(true).same_site(SameSite::Lax).finish()
}

pub(super) fn set(response: &mut HttpResponse, cookie: &Cookie<'_>) {
    if let Err(error) = response.add_cookie(cookie) {
        tracing::error!(%error, "a cookie could not be set");
    }
}

/// The parameters of a return, each of which may be there once.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(request: &HttpRequest) -> Option<Self> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, value) in parse(request.query_string().as_bytes()) {
            if found.iter().any(|(other, _)| *other == name) {
                return None;
            }
            found.push((name.into_owned(), value.into_owned()));
        }
        Some(Self(found))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}
