//! What is kept for people: searched for and listed. Never a credential.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};

use super::Counter;
use super::links::{PAGE, subject};
use super::view::{KeptPage, KeptRow, KeptSearch};
use crate::domain::{ClientId, GrantId, Invalid, Kind};
use crate::flow::Error;
use crate::flow::console::query::Query;
use crate::flow::withdraw::KeptFilter;
use crate::web::extract::form::Form;
use crate::web::pages::Pages;

const SEARCH: &str = "kept";

/// `GET /console/kept`: the search, and the first of what is kept.
pub async fn home(request: HttpRequest) -> HttpResponse {
    show(request, async |counter| page(counter, None, KeptFilter::default()).await).await
}

/// `GET /console/kept/{query}`: what was found, a page of it.
pub async fn found(request: HttpRequest) -> HttpResponse {
    show(request, async |counter| {
        let name = counter.part("query");
        match counter.gate.query(&counter.attendant.operator, name).await? {
            Query::Kept(filter) => page(counter, Some(name), filter).await,
            Query::Links(_) => Err(Error::NotFound),
        }
    })
    .await
}

async fn show(
    request: HttpRequest,
    make: impl AsyncFnOnce(&Counter) -> Result<HttpResponse, Error>,
) -> HttpResponse {
    match Counter::open(&request).await {
        Ok(counter) => make(&counter).await.unwrap_or_else(|error| counter.failed(error)),
        Err(response) => response,
    }
}

async fn page(counter: &Counter, query: Option<&str>, filter: KeptFilter) -> Result<HttpResponse, Error> {
    let page = counter.gate.search_kept(&filter, counter.id("after")?, PAGE).await?;
    Ok(Pages::html(
        StatusCode::OK,
        &KeptPage {
            frame: counter.pages.frame(),
            shell: counter.shell(SEARCH),
            search: KeptSearch::of(&counter.gate, &filter),
            rows: page.found.into_iter().map(KeptRow::of).collect(),
            query: query.map(str::to_owned),
            next: page.next.map(|next| next.to_string()),
        },
    ))
}

/// `POST /console/kept`: an operator looks for what is kept. With `revoke`, to revoke that.
pub async fn search(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let (counter, form) = match Counter::receive(&request, payload, SEARCH).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let query = match filter(&form) {
        Ok(filter) => Query::Kept(filter),
        Err(invalid) => return counter.failed(invalid.into()),
    };
    let to = if form.value("revoke").is_some() { "revoke" } else { "kept" };
    match counter.gate.remember_query(&counter.attendant.operator, query).await {
        Ok(name) => counter.on_to(&format!("/{to}/{name}")),
        Err(error) => counter.failed(error),
    }
}

fn filter(form: &Form) -> Result<KeptFilter, Invalid> {
    let text = |name: &str| form.value(name).map(str::trim).filter(|text| !text.is_empty());
    let id =
        text("id").map(|id| id.parse::<GrantId>().map_err(|_| Invalid::new("id", "is none that there is")));
    let kind = text("kind").map(|kind| Kind::ALL.into_iter().find(|known| known.as_str() == kind));
    Ok(KeptFilter {
        id: id.transpose()?,
        client: text("client").map(ClientId::new),
        subject: subject(form)?,
        slot: text("slot").map(str::to_owned),
        kind: kind.flatten(),
        provider: text("provider").map(str::to_owned),
    })
}
