//! Messages that a client's server did not take.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};

use super::Counter;
use super::view::{DeadPage, DeadRow};
use crate::flow::Error;
use crate::web::pages::Pages;

const RETRY: &str = "webhooks";

/// `GET /console/webhooks`: which they are.
pub async fn dead(request: HttpRequest) -> HttpResponse {
    let counter = match Counter::open(&request).await {
        Ok(counter) => counter,
        Err(response) => return response,
    };
    let found = async { counter.gate.dead_notices(None, counter.id("after")?).await };
    match found.await {
        Ok((found, next)) => Pages::html(
            StatusCode::OK,
            &DeadPage {
                frame: counter.pages.frame(),
                shell: counter.shell(RETRY),
                rows: found.iter().map(DeadRow::of).collect(),
                next: next.map(|next| next.to_string()),
            },
        ),
        Err(error) => counter.failed(error),
    }
}

/// `POST /console/webhooks/retry`: those of one elicitation are tried again.
pub async fn retry(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let (counter, form) = match Counter::receive(&request, payload, RETRY).await {
        Ok(received) => received,
        Err(response) => return response,
    };
    let retried = async {
        let id = form.value("elicitation").and_then(|id| id.parse().ok()).ok_or(Error::NotFound)?;
        counter.gate.revive_notices(counter.attendant.operator.revoker()?, id).await
    };
    match retried.await {
        Ok(()) => counter.on_to("/webhooks"),
        Err(error) => counter.failed(error),
    }
}
