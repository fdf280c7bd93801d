//! Links: searched for, listed, and one of them with its story.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};

use super::Counter;
use super::view::{FoundPage, HomePage, LinkPage, LinkRow, Search, Step, facts};
use crate::domain::{ClientId, ElicitationId, Invalid, Kind, StateName, Subject};
use crate::flow::Error;
use crate::flow::console::query::Query;
use crate::flow::search::Filter;
use crate::web::extract::form::Form;
use crate::web::pages::Pages;

/// What a search for links is about.
pub(super) const SEARCH: &str = "links";
/// How many are on a page.
pub(super) const PAGE: usize = 50;

/// `GET /console`: the search, and the first links that are open.
pub async fn home(request: HttpRequest) -> HttpResponse {
    let counter = match Counter::open(&request).await {
        Ok(counter) => counter,
        Err(response) => return response,
    };
    match counter.gate.search(&Filter::default(), None, PAGE).await {
        Ok(page) => {
            let rows = page.found.iter().map(LinkRow::of).collect();
            let (shell, search) =
                (counter.shell(SEARCH), Search::of(&counter.gate, None, counter.gate.now()));
            Pages::html(
                StatusCode::OK,
                &HomePage { frame: counter.pages.frame(), shell, search, rows, more: page.next.is_some() },
            )
        }
        Err(error) => counter.failed(error),
    }
}

/// `POST /console/links`: an operator looks for links.
pub async fn search(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let (counter, form) = match Counter::receive(&request, payload, SEARCH).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let query = match filter(&form, &counter) {
        Ok(filter) => Query::Links(filter),
        Err(invalid) => return counter.failed(invalid.into()),
    };
    match counter.gate.remember_query(&counter.attendant.operator, query).await {
        Ok(name) => counter.on_to(&format!("/links/{name}")),
        Err(error) => counter.failed(error),
    }
}

fn filter(form: &Form, counter: &Counter) -> Result<Filter, Invalid> {
    let text = |name: &str| form.value(name).map(str::trim).filter(|text| !text.is_empty());
    let kind = text("kind").map(|kind| Kind::ALL.into_iter().find(|known| known.as_str() == kind));
    let state = text("state").filter(|state| *state != "open");
    let states = match state {
        None => Vec::new(),
        Some("any") => StateName::ALL.to_vec(),
        Some(state) => StateName::ALL.into_iter().filter(|known| known.as_str() == state).collect(),
    };
    let age = text("age")
        .map(|age| age.parse().map_err(|_| Invalid::new("age", "must be a whole number of seconds")));
    Ok(Filter {
        client: text("client").map(ClientId::new),
        subject: subject(form)?,
        kind: kind
            .map(|kind| kind.ok_or_else(|| Invalid::new("kind", "is none that there is")))
            .transpose()?,
        operation: text("operation").map(str::to_owned),
        provider: text("provider").map(str::to_owned),
        issued_before: age.transpose()?.map(|age| counter.gate.now() - Duration::from_secs(age)),
        states,
    })
}

/// The person that a form names; both parts or none.
pub(super) fn subject(form: &Form) -> Result<Option<Subject>, Invalid> {
    // As they were entered: ids may begin or end with anything.
    let text = |name: &str| form.value(name).filter(|text| !text.is_empty()).map(str::to_owned);
    match (text("issuer"), text("subject")) {
        (None, None) => Ok(None),
        (Some(issuer), Some(id)) => Ok(Some(Subject { issuer, id })),
        (None, Some(_)) => Err(Invalid::new("issuer", "is needed with a person's id")),
        (Some(_), None) => Err(Invalid::new("person’s id", "is needed with an issuer")),
    }
}

/// `GET /console/links/{query}`: what was found, a page of it.
pub async fn found(request: HttpRequest) -> HttpResponse {
    let counter = match Counter::open(&request).await {
        Ok(counter) => counter,
        Err(response) => return response,
    };
    match find(&counter).await {
        Ok(page) => Pages::html(StatusCode::OK, &page),
        Err(error) => counter.failed(error),
    }
}

async fn find(counter: &Counter) -> Result<FoundPage<'_>, Error> {
    let name = counter.part("query");
    let Query::Links(filter) = counter.gate.query(&counter.attendant.operator, name).await? else {
        return Err(Error::NotFound);
    };
    let page = counter.gate.search(&filter, counter.id("after")?, PAGE).await?;
    Ok(FoundPage {
        frame: counter.pages.frame(),
        shell: counter.shell(SEARCH),
        search: Search::of(&counter.gate, Some(&filter), counter.gate.now()),
        rows: page.found.iter().map(LinkRow::of).collect(),
        query: name.to_owned(),
        next: page.next.map(|next: ElicitationId| next.to_string()),
        // What has ended is not revoked.
        revocable: filter.states.is_empty() || filter.states.iter().any(|state| !state.is_terminal()),
    })
}

/// What the form to revoke one is about.
pub(super) fn place(id: ElicitationId) -> String {
    format!("link {id}")
}

/// `GET /console/link/{id}`: one link, with its story.
pub async fn one(request: HttpRequest) -> HttpResponse {
    let counter = match Counter::open(&request).await {
        Ok(counter) => counter,
        Err(response) => return response,
    };
    match look_at(&counter).await {
        Ok(page) => Pages::html(StatusCode::OK, &page),
        Err(error) => counter.failed(error),
    }
}

async fn look_at(counter: &Counter) -> Result<LinkPage<'_>, Error> {
    let id = counter.id("id")?.ok_or(Error::NotFound)?;
    let elicitation = counter.gate.look_up(id).await?;
    let history = counter.gate.history(&elicitation).await?;
    Ok(LinkPage {
        frame: counter.pages.frame(),
        shell: counter.shell(&place(id)),
        row: LinkRow::of(&elicitation),
        facts: facts(&elicitation),
        steps: history.events.iter().map(Step::of).collect(),
        is_whole: history.is_whole,
        revocable: !elicitation.state().name().is_terminal(),
        paid: elicitation.is_paid(),
    })
}
