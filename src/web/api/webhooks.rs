//! Where payment processors call.

use actix_web::{HttpRequest, HttpResponse, web};

use crate::flow::Gate;
use crate::flow::webhook::Heard;
use crate::upstream::payment::{Unverified, Webhook};
use crate::web::extract::body::{announced_length, read_body};
use crate::web::problem::Problem;

/// Largest event, in bytes.
const LARGEST: usize = 256 * 1024;

/// `POST /webhooks/{payment id}`: something may have happened to an order. The body is read byte for byte, since that is what
/// is signed.
///
/// # Errors
/// [`Problem`]; what is not 2xx has the processor send it again.
pub async fn hear(
    gate: web::Data<Gate>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let body = read_body(&mut payload.into_inner(), announced_length(&request), LARGEST).await?;
    let headers: Vec<(String, String)> = request
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let header = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let processor = request.match_info().get("payment").unwrap_or_default();
    match gate.hear_webhook(processor, &Webhook { header: &header, body: &body }).await? {
        Heard::Done => Ok(HttpResponse::Ok().finish()),
        Heard::Later | Heard::Unverified(Unverified::Unavailable) => Err(Problem::later()),
        Heard::Unverified(why) => Err(Problem::unverified(why.code())),
    }
}
