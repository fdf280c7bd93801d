//! One is revoked, or all that were found: counted, with a reason, agreed to by a second operator where that is asked for, and
//! shown how far it is.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};

use super::view::{BulkPage, ConfirmPage};
use super::{Counter, links};
use crate::domain::{ElicitationId, Invalid};
use crate::flow::Error;
use crate::flow::console::bulk::COUNTED;
use crate::flow::revoke::Reason;
use crate::web::extract::form::Form;
use crate::web::pages::Pages;

fn place(query: &str) -> String {
    format!("revoke {query}")
}

fn reason(form: &Form) -> Result<Reason, Invalid> {
    Reason::new(form.value("reason").unwrap_or_default())
}

fn is_sure(form: &Form) -> Result<(), Invalid> {
    match form.value("sure") {
        Some(_) => Ok(()),
        None => Err(Invalid::new("box", "that says that you want it must be ticked")),
    }
}

/// `POST /console/link/{id}/revoke`: one.
pub async fn one(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let Some(id) = request.match_info().get("id").and_then(|id| id.parse::<ElicitationId>().ok()) else {
        return match Counter::open(&request).await {
            Ok(counter) => counter.failed(Error::NotFound),
            Err(response) => response,
        };
    };
    let (counter, form) = match Counter::receive(&request, payload, &links::place(id)).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let revoked = async {
        let revoker = counter.attendant.operator.revoker()?;
        is_sure(&form)?;
        counter.gate.revoke(revoker, id, &reason(&form)?, form.value("refund").is_some()).await
    };
    match revoked.await {
        Ok(_) => counter.on_to(&format!("/link/{id}")),
        Err(error) => counter.failed(error),
    }
}

/// `GET /console/revoke/{query}`: all that were found? How many that is.
pub async fn ask(request: HttpRequest) -> HttpResponse {
    let counter = match Counter::open(&request).await {
        Ok(counter) => counter,
        Err(response) => return response,
    };
    let name = counter.part("query");
    let asked = async {
        counter.attendant.operator.revoker()?;
        let query = counter.gate.query(&counter.attendant.operator, name).await?;
        let count = counter.gate.count(&query).await?;
        Ok((query, count))
    };
    match asked.await {
        Ok((query, count)) => Pages::html(
            StatusCode::OK,
            &ConfirmPage {
                frame: counter.pages.frame(),
                shell: counter.shell(&place(name)),
                kept: matches!(query, crate::flow::console::query::Query::Kept(_)),
                criteria: super::view::criteria(&query),
                query: name,
                count,
                more: count >= COUNTED,
                alone: counter.gate.one_may_revoke(count),
            },
        ),
        Err(error) => counter.failed(error),
    }
}

/// `POST /console/revoke/{query}`: all that were found.
pub async fn begin(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let name = request.match_info().get("query").unwrap_or_default().to_owned();
    let (counter, form) = match Counter::receive(&request, payload, &place(&name)).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let begun = async {
        let operator = &counter.attendant.operator;
        let revoker = operator.revoker()?;
        is_sure(&form)?;
        let query = counter.gate.query(operator, &name).await?;
        counter.gate.begin_bulk(revoker, query, reason(&form)?, form.value("refund").is_some()).await
    };
    match begun.await {
        Ok((bulk, now)) => {
            if now {
                run(&counter, &bulk);
            }
            counter.on_to(&format!("/revocation/{bulk}"))
        }
        Err(error) => counter.failed(error),
    }
}

/// Goes on after the answer.
fn run(counter: &Counter, bulk: &str) {
    let (gate, bulk) = (counter.gate.clone(), bulk.to_owned());
    actix_web::rt::spawn(async move { gate.run_bulk(&bulk).await });
}

/// `GET /console/revocation/{bulk}`: how far it is.
pub async fn progress(request: HttpRequest) -> HttpResponse {
    let counter = match Counter::open(&request).await {
        Ok(counter) => counter,
        Err(response) => return response,
    };
    let name = counter.part("bulk");
    match counter.gate.bulk(name).await {
        Ok(bulk) => {
            let page = BulkPage {
                frame: counter.pages.frame(),
                shell: counter.shell(&place(name)),
                url: format!("{}/console/revocation/{name}", counter.gate.public_url),
                criteria: super::view::criteria(&bulk.query),
                may_decide: bulk.may_decide(&counter.attendant.operator),
                stuck: bulk.is_stuck(counter.gate.now()),
                name,
                bulk: &bulk,
            };
            Pages::html(StatusCode::OK, &page)
        }
        Err(error) => counter.failed(error),
    }
}

/// `POST /console/revocation/{bulk}/{what}`: a second operator agrees or not, or somebody has it gone on with.
pub async fn decide(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let name = request.match_info().get("bulk").unwrap_or_default().to_owned();
    let (counter, _) = match Counter::receive(&request, payload, &place(&name)).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let operator = &counter.attendant.operator;
    let decided = async {
        match counter.part("what") {
            "agree" => counter.gate.decide_bulk(operator, &name, true).await,
            "refuse" => counter.gate.decide_bulk(operator, &name, false).await,
            "resume" => counter.gate.resume_bulk(operator.revoker()?, &name).await,
            _ => Err(Error::NotFound),
        }
    };
    match decided.await {
        Ok(now) => {
            if now {
                run(&counter, &name);
            }
            counter.on_to(&format!("/revocation/{name}"))
        }
        Err(error) => counter.failed(error),
    }
}
