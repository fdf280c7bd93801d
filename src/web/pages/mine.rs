//! What is kept for a person: seen and deleted by them.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;

use super::submit::{BARE_FORM, Desk};
use super::text::{Mine as Words, Notice, Text};
use super::view::{Frame, SignInForm};
use super::{Pages, page_of};
use crate::domain::Timestamp;
use crate::domain::kept::Held;
use crate::flow::form::FormProof;
use crate::flow::mine::{Mine, Visitor};
use crate::flow::page::{Door, Page};
use crate::flow::{Error, Gate};
use crate::web::extract::browser::with_browser;
use crate::web::extract::form::{Form, is_same_origin};

/// The page.
#[derive(Template)]
#[template(path = "mine.html")]
struct MinePage<'a> {
    frame: Frame<'a>,
    words: &'a Words,
    page: String,
    person: &'a str,
    entries: Vec<Entry>,
    proof: &'a FormProof,
    can_switch: bool,
}

struct Entry {
    id: String,
    client: String,
    what: String,
    scopes: Vec<String>,
    since: String,
    until: String,
    used: Option<String>,
}

/// `GET /mine`: the one door that there is, or which.
pub async fn doors(gate: web::Data<Gate>, pages: web::Data<Pages>) -> HttpResponse {
    match gate.doors().as_slice() {
        [only] => Pages::see_other(pages.page_path(&Page::Mine(only.clone()))),
        [] => pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", ""),
        several => pages.doors(several),
    }
}

/// `GET /mine/{door}`: what is kept.
pub async fn mine(gate: web::Data<Gate>, pages: web::Data<Pages>, request: HttpRequest) -> HttpResponse {
    let Some(Page::Mine(door)) = page_of(&request) else {
        return pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", "");
    };
    match with_browser(&request, async |browser| gate.mine(&door, browser).await).await {
        Ok(Visitor::Known(mine)) => {
            let page = pages.page_path(&Page::Mine(door));
            Pages::html(StatusCode::OK, &MinePage::new(pages.frame(), &gate, &mine, page))
        }
        Ok(Visitor::Nobody { sign_in, source }) => {
            let page = pages.page_path(&Page::Mine(door));
            let form = sign_in.map(|proof| SignInForm { page, proof, again: false });
            let notice = match source {
                "loopback" => Notice::SignInLoopback,
                _ if form.is_some() => Notice::MineSignIn,
                _ => Notice::SignIn,
            };
            pages.notice_with(StatusCode::UNAUTHORIZED, notice, "Sidegate", "", form)
        }
        Err(error) => pages.failed(error, ""),
    }
}

/// `POST /mine/{door}/delete`: the person deletes one thing.
pub async fn delete(desk: Desk, payload: web::Payload) -> HttpResponse {
    let Desk { gate, pages, site, request } = desk;
    let Some(Page::Mine(door)) = page_of(&request) else {
        return pages.notice(StatusCode::NOT_FOUND, Notice::NotFound, "", "");
    };
    let form = match Form::read(&request, &mut payload.into_inner(), BARE_FORM).await {
        Ok(form) => form,
        Err(problem) => return pages.problem(&problem),
    };
    let Some(grant) = form.value("grant").and_then(|id| id.parse().ok()) else {
        return pages.failed(Error::FormRefused, "");
    };
    let same_origin = is_same_origin(&request, &site.public_url);
    let proof = form.proof();
    let deleted = with_browser(&request, async |browser| {
        gate.delete_mine(&door, browser, proof.as_ref(), same_origin, grant).await
    });
    match deleted.await {
        Ok(()) => Pages::see_other(pages.page_path(&Page::Mine(door))),
        Err(error) => pages.failed(error, ""),
    }
}

impl<'a> MinePage<'a> {
    fn new(frame: Frame<'a>, gate: &Gate, mine: &'a Mine, page: String) -> Self {
        let text = frame.text;
        let entries = mine.kept.iter().flat_map(|(client, kept)| {
            kept.slots().filter_map(|(_, grant)| {
                let (what, scopes) = what(text, gate, &grant.held)?;
                Some(Entry {
                    id: grant.id.to_string(),
                    client: client.name.clone(),
                    what,
                    scopes,
                    since: day(grant.since),
                    until: day(grant.until),
                    used: grant.used_at.map(day),
                })
            })
        });
        Self {
            words: &text.mine,
            page,
            person: &mine.person.name,
            entries: entries.collect(),
            proof: &mine.proof,
            can_switch: mine.can_switch,
            frame,
        }
    }
}

/// What is kept, in words; `None` if it is there no longer.
fn what(text: &Text, gate: &Gate, held: &Held) -> Option<(String, Vec<String>)> {
    match held {
        Held::Secret { labels, .. } if labels.is_empty() => Some((text.mine.secret.to_string(), Vec::new())),
        Held::Secret { labels, .. } => Some((labels.join(", "), Vec::new())),
        Held::Tokens { provider, sets, .. } => {
            let name = gate.providers.get(provider).map_or(provider.as_str(), |known| &known.settings().name);
            let account = sets.iter().rev().find_map(|set| set.account.as_deref());
            let what = account.map_or_else(|| name.to_owned(), |account| format!("{name}: {account}"));
            let mut scopes: Vec<_> = sets.iter().flat_map(|set| set.scopes.clone()).collect();
            scopes.sort();
            scopes.dedup();
            Some((what, scopes))
        }
        Held::Ended { .. } => None,
    }
}

/// The day, UTC.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

/// Which door?
#[derive(Template)]
#[template(path = "doors.html")]
pub(super) struct DoorsPage<'a> {
    frame: Frame<'a>,
    doors: Vec<(String, String)>,
}

impl<'a> DoorsPage<'a> {
    pub(super) fn new(frame: Frame<'a>, doors: Vec<(String, &Door)>) -> Self {
        Self { frame, doors: doors.into_iter().map(|(path, door)| (path, door.to_string())).collect() }
    }
}
