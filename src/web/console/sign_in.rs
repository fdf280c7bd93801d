//! Operators come in: by key, or by a sign-in elsewhere; and go.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};

use super::view::SignInPage;
use super::{Counter, read};
use crate::flow::departure::BROWSER_COOKIE;
use crate::flow::page::Page;
use crate::flow::sign_in::Begun;
use crate::flow::{Error, Gate};
use crate::web::Site;
use crate::web::extract::browser::with_browser;
use crate::web::extract::caller::ApiKeys;
use crate::web::extract::form::{Form, is_same_origin};
use crate::web::pages::Pages;
use crate::web::pages::sign_in::{cookie, leave_from, set, word};

/// What the forms to sign in, and out, are about.
const IN: &str = "sign in";
pub(super) const OUT: &str = "sign out";

/// The page to sign in, with why it did not come about before.
pub(super) fn page(gate: &Gate, pages: &Pages, status: StatusCode, error: Option<&str>) -> HttpResponse {
    let source = gate.console.door.as_ref().map(|door| door.source.as_str());
    let proof = gate.console_proof(None, IN);
    Pages::html(status, &SignInPage { frame: pages.frame(), base: pages.console(), source, proof, error })
}

/// Reads a form of that page, which must be ours.
async fn receive(
    gate: &Gate,
    pages: &Pages,
    site: &Site,
    request: &HttpRequest,
    payload: web::Payload,
) -> Result<Form, HttpResponse> {
    let form = read(request, pages, payload.into_inner()).await?;
    let same_origin = is_same_origin(request, &site.public_url);
    let checked = gate.check_console_form(None, IN, form.proof().as_ref(), same_origin);
    checked.map_err(|error| pages.failed(error, ""))?;
    Ok(form)
}

/// `POST /console/key/signin`: an operator with a key.
pub async fn by_key(
    (gate, pages, site): (web::Data<Gate>, web::Data<Pages>, web::Data<Site>),
    keys: web::Data<ApiKeys>,
    request: HttpRequest,
    payload: web::Payload,
) -> HttpResponse {
    let form = match receive(&gate, &pages, &site, &request, payload).await {
        Ok(form) => form,
        Err(response) => return response,
    };
    let Some(digest) = form.value("key").and_then(|key| keys.operator(key.trim())) else {
        let error = "That is no operator's key. It begins with sgo_ and was shown once, when it was made.";
        return page(&gate, &pages, StatusCode::FORBIDDEN, Some(error));
    };
    let begun = with_browser(&request, async |browser| gate.begin_attendance_by_key(digest, browser).await);
    match begun.await {
        Ok((name, value)) => {
            let mut response = Pages::see_other(pages.console());
            set(&mut response, &cookie(name, value));
            response
        }
        Err(error) => pages.failed(error, ""),
    }
}

/// `POST /console/signin`: an operator who signs in elsewhere.
pub async fn elsewhere(
    (gate, pages, site): (web::Data<Gate>, web::Data<Pages>, web::Data<Site>),
    request: HttpRequest,
    payload: web::Payload,
) -> HttpResponse {
    let form = match receive(&gate, &pages, &site, &request, payload).await {
        Ok(form) => form,
        Err(response) => return response,
    };
    let again = form.value("again").is_some();
    let begun =
        with_browser(&request, async |browser| gate.begin_operator_sign_in(browser, again).await).await;
    let console = pages.console();
    match begun {
        Ok(Begun::Leaves { departure, browser }) => {
            let mut response = Pages::see_other(format!("{console}/leave/{departure}"));
            set(&mut response, &cookie(BROWSER_COOKIE, browser));
            response
        }
        Ok(Begun::SignedIn) => Pages::see_other(console),
        Ok(Begun::Failed(error)) => Pages::see_other(format!("{console}/sign-in/{}", word(error))),
        Err(error) => pages.failed(error, ""),
    }
}

/// `GET /console/leave/{departure}`: the last page of ours.
pub async fn leave(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    leave_from(&gate, &pages, &request, Page::Console).await
}

/// `GET /console/sign-in/{what}`: why a sign-in did not come about.
pub async fn came_to(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let (status, error) = match request.match_info().get("what") {
        Some("declined") => (StatusCode::FORBIDDEN, "You said no there, so nobody is signed in."),
        Some("unavailable") => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The place where you sign in does not answer. Wait a little, or use a key.",
        ),
        Some("no-operator") => (
            StatusCode::FORBIDDEN,
            "You signed in, and are no operator here. Ask whoever runs this service, or sign in as somebody else.",
        ),
        Some("failed") => (StatusCode::FORBIDDEN, "The sign-in was not accepted. Try again."),
        _ => return pages.failed(Error::NotFound, ""),
    };
    if !gate.console.is_open() {
        return pages.failed(Error::NotFound, "");
    }
    page(&gate, &pages, status, Some(error))
}

/// `POST /console/signout`: the operator goes.
pub async fn out(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let (counter, _) = match Counter::receive(&request, payload, OUT).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    match with_browser(&request, async |browser| counter.gate.end_attendance(browser).await).await {
        Ok(()) => counter.on_to(""),
        Err(error) => counter.failed(error),
    }
}
