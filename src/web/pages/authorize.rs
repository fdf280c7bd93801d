//! The page of an authorization: the button to the provider, and the way back.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::Pages;
use super::open::arrive;
use super::sign_in::{Query, cookie, set};
use super::submit::Desk;
use super::text::{Authorize, Notice, Phrase, Text};
use super::view::{Asked, Frame, why};
use crate::domain::Elicitation;
use crate::domain::kept::Again;
use crate::domain::oauth::OAuthRequest;
use crate::flow::Gate;
use crate::flow::authorize::{Authorizing, Came};
use crate::flow::callback::{Answer, Callback};
use crate::flow::departure::BROWSER_COOKIE;
use crate::flow::open::Guest;
use crate::upstream::oauth::{Returned, Settings, named_state};
use crate::web::extract::browser::with_browser;
use crate::web::extract::form::Form;

/// The most that a provider may send with a browser.
const LARGEST_ANSWER: usize = 64 * 1024;

/// The page of an authorization.
#[derive(Template)]
#[template(path = "authorize.html")]
pub(super) struct AuthorizePage<'a> {
    frame: Frame<'a>,
    words: &'a Authorize,
    title: String,
    asked: Asked<'a>,
    why: Option<String>,
    provider: &'a str,
    scopes_title: String,
    scopes: Vec<ScopeView<'a>>,
    /// What went wrong the last time.
    error: Option<String>,
}

struct ScopeView<'a> {
    name: &'a str,
    words: Option<&'a str>,
}

impl<'a> AuthorizePage<'a> {
    pub(super) fn new(
        frame: Frame<'a>,
        elicitation: &'a Elicitation,
        (request, provider): (&'a OAuthRequest, Option<&'a Settings>),
        asked: Asked<'a>,
        error: Option<&Phrase>,
    ) -> Self {
        let (text, words) = (frame.text, &frame.text.authorize);
        let name = provider.map_or(request.provider.as_str(), |provider| provider.name.as_str());
        let before = match &elicitation.terms().again {
            Some(Again::More { scopes, .. }) => scopes.as_slice(),
            Some(Again::Discarded(_) | Again::Lapsed) | None => &[],
        };
        let preset = provider.and_then(|provider| provider.preset.as_deref());
        let scope = |name: &'a String| ScopeView { name, words: scope_words(text, preset, name) };
        let title = if before.is_empty() { &words.scopes } else { &words.more_scopes };
        Self {
            title: words.title.with("client", asked.client).with("provider", name).to_string(),
            scopes_title: title.with("client", asked.client).to_string(),
            scopes: request.scopes.iter().filter(|scope| !before.contains(scope)).map(scope).collect(),
            why: why(text, elicitation, asked.client),
            error: error.map(|error| error.with("provider", name).to_string()),
            provider: name,
            words,
            asked,
            frame,
        }
    }
}

fn scope_words<'a>(text: &'a Text, preset: Option<&str>, scope: &str) -> Option<&'a str> {
    text.scopes.get(preset?)?.get(scope).map(String::as_str)
}

/// `POST /e/{id}/authorize`: the person goes on to the provider.
pub async fn begin(desk: Desk, payload: web::Payload) -> HttpResponse {
    let (guest, _) = match desk.receive(payload).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let (gate, pages, request) = (&desk.gate, &desk.pages, &desk.request);
    let begun = with_browser(request, async |browser| gate.authorize(&guest, browser).await).await;
    let page = pages.path(guest.elicitation().id());
    match begun {
        Ok(Authorizing::Leaves { departure, browser }) => {
            let mut response = Pages::see_other(format!("{page}/leave/{departure}"));
            set(&mut response, &cookie(BROWSER_COOKIE, browser));
            response
        }
        Ok(Authorizing::Done) => Pages::see_other(page + "/done"),
        Ok(Authorizing::Not(came)) => Pages::see_other(page + rest(came)),
        Err(error) => pages.failed(error, &guest.client().name),
    }
}

/// `GET /oauth/callback/{provider}`: the browser is back, with the answer in the query or under a name.
pub async fn callback(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let stray = || pages.notice(StatusCode::FORBIDDEN, Notice::AuthorizeStray, "", "");
    let (Some(query), Some(provider)) = (Query::of(&request), request.match_info().get("provider")) else {
        return stray();
    };
    let answer = match query.get("posted") {
        None => Ok(Some(answer(&query))),
        Some(name) => gate.posted(provider, name).await,
    };
    let answer = match answer {
        Ok(Some(answer)) => answer,
        Ok(None) => return stray(),
        Err(error) => return pages.failed(error, ""),
    };
    let came =
        with_browser(&request, async |browser| gate.finish_authorization(provider, answer, browser).await);
    match came.await {
        Ok(Callback::Stray) => stray(),
        Ok(Callback::TurnedAway(id, arrival)) => match pages.turned_away(id, arrival, None) {
            Ok(guest) => Pages::see_other(pages.path(guest.elicitation().id())),
            Err(response) => response,
        },
        Ok(Callback::Late(guest)) => {
            pages.notice(StatusCode::CONFLICT, Notice::AuthorizeLate, &guest.client().name, "")
        }
        Ok(Callback::Came { id, came, cookie: mark }) => {
            let mut response = Pages::see_other(pages.path(id) + rest(came));
            if let Some((name, value)) = mark {
                set(&mut response, &cookie(name, value));
            }
            response
        }
        Err(error) => pages.failed(error, ""),
    }
}

/// `POST /oauth/callback/{provider}`: the answer comes as a form, from elsewhere and so without our cookies. Before anything
/// is done with it the browser comes to our own address, with them.
pub async fn posted(
    gate: web::Data<Gate>,
    pages: web::Data<Pages>,
    request: HttpRequest,
    payload: web::Payload,
) -> HttpResponse {
    let stray = || pages.notice(StatusCode::FORBIDDEN, Notice::AuthorizeStray, "", "");
    let form = match Form::read(&request, &mut payload.into_inner(), LARGEST_ANSWER).await {
        Ok(form) => form,
        Err(problem) => return pages.problem(&problem),
    };
    let (Some(query), Some(provider)) = (Query::of_form(&form), request.match_info().get("provider")) else {
        return stray();
    };
    match gate.hold_posted(provider, answer(&query)).await {
        Ok(Some(name)) => Pages::see_other(format!("{}?posted={name}", pages.callback_path(provider))),
        Ok(None) => stray(),
        Err(error) => pages.failed(error, ""),
    }
}

/// `GET /e/{id}/authorize/{what}`: the page again, with what went wrong.
pub async fn came_to(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let words = &pages.text.authorize;
    let (status, error) = match request.match_info().get("what") {
        Some("unavailable") => (StatusCode::SERVICE_UNAVAILABLE, &words.unavailable),
        Some("unauthorized") => (StatusCode::OK, &words.unauthorized),
        Some("not-accepted") => (StatusCode::FORBIDDEN, &words.not_accepted),
        _ => return pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", ""),
    };
    match arrive(&gate, &pages, &request).await {
        Ok(guest) if is_open(&guest) => pages.authorize(&gate, &guest, status, Some(error)),
        Ok(guest) => pages.standing(&gate, &guest),
        Err(response) => response,
    }
}

fn is_open(guest: &Guest) -> bool {
    guest.elicitation().state().name().is_live() && !guest.elicitation().is_answered()
}

const fn rest(came: Came) -> &'static str {
    match came {
        Came::Ended | Came::Finished => "/done",
        Came::Unavailable => "/authorize/unavailable",
        Came::Unauthorized => "/authorize/unauthorized",
        Came::NotAccepted => "/authorize/not-accepted",
    }
}

/// What a provider says, in a query or a form.
fn answer(query: &Query) -> Answer {
    let text = |name: &str| query.get(name).map(str::to_owned);
    let response = text("response").map(zeroize::Zeroizing::new);
    let state = text("state").or_else(|| named_state(response.as_deref()?)).unwrap_or_default();
    let code = text("code").map(zeroize::Zeroizing::new);
    Answer { state, returned: Returned { code, iss: text("iss"), error: text("error"), response } }
}
