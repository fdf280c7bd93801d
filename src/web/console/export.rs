//! What was found, to take away: as CSV (RFC 4180) or JSON.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;

use super::Counter;
use super::view::{KeptRow, LinkRow, Row};
use crate::flow::Error;
use crate::flow::console::query::Query;

/// How many are exported at most.
const MOST: usize = 100_000;
/// How many are read at once.
const PART: usize = 1000;

/// `GET /console/links/{query}/export.{format}`.
pub async fn links(request: HttpRequest) -> HttpResponse {
    let counter = match Counter::open(&request).await {
        Ok(counter) => counter,
        Err(response) => return response,
    };
    let rows = async {
        let Query::Links(filter) = query(&counter).await? else { return Err(Error::NotFound) };
        let (mut after, mut rows) = (None, Vec::new());
        loop {
            let page = counter.gate.search(&filter, after, PART).await?;
            rows.extend(page.found.iter().map(LinkRow::of));
            after = page.next;
            if after.is_none() || rows.len() >= MOST {
                return Ok(rows);
            }
        }
    };
    answer(&counter, "links", rows.await)
}

/// `GET /console/kept/{query}/export.{format}`.
pub async fn kept(request: HttpRequest) -> HttpResponse {
    let counter = match Counter::open(&request).await {
        Ok(counter) => counter,
        Err(response) => return response,
    };
    let rows = async {
        let Query::Kept(filter) = query(&counter).await? else { return Err(Error::NotFound) };
        let (mut after, mut rows) = (None, Vec::new());
        loop {
            let page = counter.gate.search_kept(&filter, after, PART).await?;
            rows.extend(page.found.into_iter().map(KeptRow::of));
            after = page.next;
            if after.is_none() || rows.len() >= MOST {
                return Ok(rows);
            }
        }
    };
    answer(&counter, "kept", rows.await)
}

async fn query(counter: &Counter) -> Result<Query, Error> {
    counter.gate.query(&counter.attendant.operator, counter.part("query")).await
}

fn answer<R: Serialize + Row>(counter: &Counter, name: &str, rows: Result<Vec<R>, Error>) -> HttpResponse {
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => return counter.failed(error),
    };
    let written = match counter.part("format") {
        "csv" => csv(&rows).ok().map(|body| ("text/csv; charset=utf-8", body)),
        "json" => serde_json::to_vec_pretty(&rows).ok().map(|body| ("application/json", body)),
        _ => return counter.failed(Error::NotFound),
    };
    let Some((media_type, body)) = written else { return HttpResponse::InternalServerError().finish() };
    HttpResponse::build(StatusCode::OK)
        .insert_header((CONTENT_TYPE, media_type))
        .insert_header((
            CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}.{}\"", counter.part("format")),
        ))
        .body(body)
}

/// A table in CSV. What a spreadsheet would take for a formula begins with an apostrophe: clients choose some of these texts.
fn csv<R: Row>(rows: &[R]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(R::NAMES)?;
    for row in rows {
        writer.write_record(row.cells().into_iter().map(|cell| {
            if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
                format!("'{cell}")
            } else {
                cell.to_owned()
            }
        }))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}
