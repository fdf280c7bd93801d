//! The parts: issue, status, confirm, claim, cancel.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ask::{AskBody, OperationBody, SubjectBody};
use super::view::ElicitationView;
use crate::domain::{Code, Invalid, Outcome, Refusal, StateName, Subject};
use crate::flow::Gate;
use crate::flow::confirm::Confirmed;
use crate::flow::issue::{Ask, IdempotencyKey};
use crate::web::extract::caller::ApiClient;
use crate::web::extract::id::Id;
use crate::web::extract::json::Json;
use crate::web::problem::Problem;

/// An elicitation that was just issued, or issued before with the same `Idempotency-Key`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuedView {
    #[serde(flatten)]
    elicitation: ElicitationView,
    /// For a first round that the handler answers itself.
    request_state: String,
}

/// Issues an elicitation. With an `Idempotency-Key` the same request may be sent again.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/elicitations", tag = "elicitations", request_body = AskBody,
    params(("Idempotency-Key" = Option<String>, Header, description = "Up to 255 visible ASCII characters")),
    responses(
        (status = 201, description = "Issued", body = IssuedView),
        (status = 200, description = "Issued before with the same key", body = IssuedView),
        (status = 409, description = "`idempotency_mismatch`", body = Problem),
        (status = 422, description = "`invalid_request`, with the field", body = Problem),
        (status = 429, description = "`too_many_pending` or `too_many_requests`", body = Problem),
    ), security(("client" = [])))]
pub async fn issue(
    gate: web::Data<Gate>,
    client: ApiClient,
    request: HttpRequest,
    body: Json<AskBody>,
) -> Result<HttpResponse, Problem> {
    let idempotency =
        idempotency_key(&request)?.map(|key| IdempotencyKey { key, fingerprint: body.fingerprint });
    let issued = gate.issue(&client.0, Ask::try_from(body.value)?, idempotency).await?;
    let elicitation = ElicitationView::of(&issued.elicitation, &gate);
    let mut response = if issued.existed { HttpResponse::Ok() } else { HttpResponse::Created() };
    Ok(response.json(IssuedView { elicitation, request_state: issued.request_state }))
}

fn idempotency_key(request: &HttpRequest) -> Result<Option<String>, Invalid> {
    let Some(value) = request.headers().get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().map(str::trim).filter(|key| (1..=255).contains(&key.len()));
    key.map(|key| Some(key.to_owned()))
        .ok_or_else(|| Invalid::new("Idempotency-Key", "must have 1 to 255 visible ASCII characters"))
}

/// What may stand in the query of a status call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusQuery {
    #[serde(default)]
    wait: u64,
}

/// Tells how an elicitation stands; waits up to `wait` seconds until the person is done with it.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(get, path = "/v1/elicitations/{id}", tag = "elicitations",
    params(("id" = String, Path), ("wait" = Option<u64>, Query, description = "Seconds, at most 50")),
    responses(
        (status = 200, description = "How it stands", body = ElicitationView),
        (status = 404, description = "`not_found`", body = Problem),
    ), security(("client" = [])))]
pub async fn status(
    gate: web::Data<Gate>,
    client: ApiClient,
    id: Id,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let query = web::Query::<StatusQuery>::from_query(request.query_string()).map_err(|_| {
        Invalid::new("wait", "must be a whole number of seconds, and nothing else may be in the query")
    })?;
    let elicitation = gate.poll(&client.0, id.0, Duration::from_secs(query.wait)).await?;
    Ok(HttpResponse::Ok().json(ElicitationView::of(&elicitation, &gate)))
}

/// Whom and what a claim is for.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimBody {
    /// The person, as at issue.
    subject: Option<SubjectBody>,
    /// The operation, as at issue; its summary does not matter.
    operation: OperationBody,
    /// The caller's name for this try: the same name may claim again within the claim window.
    attempt: Option<String>,
}

/// An outcome, released.
#[derive(Serialize, ToSchema)]
pub struct ClaimedView {
    /// For kind `secret`: `{"values": {name: value}}`. For `oauth`: `{"accessToken", "tokenType", "scopes", "expiresAt"?,
    /// "refreshToken"?, "idTokenClaims"?, "extra"?, "dpopKey"?}`; without `refreshToken` if it is kept. For
    /// `payment`: `{"payment": {"provider", "reference", "id", "amount", "currency", "paidAt", "livemode"}}`.
    #[schema(value_type = Object)]
    credential: Outcome,
}

/// Releases the outcome, once.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/elicitations/{id}/claim", tag = "elicitations", request_body = ClaimBody,
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The credential; `Idempotent-Replay: true` if this attempt had it before", body = ClaimedView),
        (status = 404, description = "`not_found`", body = Problem),
        (status = 409, description = "`not_completed`, `already_claimed`, `binding_mismatch` or `ended`", body = Problem),
    ), security(("client" = [])))]
pub async fn claim(
    gate: web::Data<Gate>,
    client: ApiClient,
    id: Id,
    body: Json<ClaimBody>,
) -> Result<HttpResponse, Problem> {
    let ClaimBody { subject, operation, attempt } = body.value;
    let attempt = attempt.map(|name| checked_attempt(&name)).transpose()?;
    let subject = subject.map(Subject::from);
    let claimed = gate.claim(&client.0, id.0, subject, operation.digest()?, attempt.as_deref()).await?;
    let mut response = HttpResponse::Ok();
    if claimed.replay {
        response.insert_header(("Idempotent-Replay", "true"));
    }
    Ok(response.json(ClaimedView { credential: claimed.outcome }))
}

/// Checks a caller's name for a claim.
///
/// # Errors
/// [`Invalid`] at `attempt`.
pub fn checked_attempt(name: &str) -> Result<String, Invalid> {
    if (1..=255).contains(&name.len()) {
        Ok(name.to_owned())
    } else {
        Err(Invalid::new("attempt", "must have 1 to 255 bytes"))
    }
}

/// The code of the finished page.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfirmBody {
    /// As the person entered it in the MCP client; spaces and hyphens do not matter.
    #[schema(example = "1234 5678")]
    code: String,
}

/// Takes the code that the finished page showed, where the client's identity source is `confirm`. After five wrong ones
/// the outcome is destroyed.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/elicitations/{id}/confirm", tag = "elicitations", request_body = ConfirmBody,
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "Completed, now or before", body = ElicitationView),
        (status = 404, description = "`not_found`", body = Problem),
        (status = 422, description = "`invalid_request` if it is no code at all, which costs no try", body = Problem),
        (status = 409, description = "`wrong_code`, `not_completed` while the person is not done, or `ended`", body = Problem),
    ), security(("client" = [])))]
pub async fn confirm(
    gate: web::Data<Gate>,
    client: ApiClient,
    id: Id,
    body: Json<ConfirmBody>,
) -> Result<HttpResponse, Problem> {
    let code = Code::read(&body.value.code)
        .ok_or_else(|| Invalid::new("code", "must be the 8 digits that the page shows"))?;
    match gate.confirm(&client.0, id.0, &code).await? {
        Confirmed::Right => {
            let elicitation = gate.poll(&client.0, id.0, Duration::ZERO).await?;
            Ok(HttpResponse::Ok().json(ElicitationView::of(&elicitation, &gate)))
        }
        Confirmed::Wrong(tries_left) => Err(Problem::wrong_code(tries_left)),
        Confirmed::Destroyed => Err(Refusal::Ended(StateName::Failed).into()),
    }
}

/// Ends an elicitation that the handler no longer needs.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/elicitations/{id}/cancel", tag = "elicitations",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "Cancelled, now or before", body = ElicitationView),
        (status = 404, description = "`not_found`", body = Problem),
        (status = 409, description = "`ended`", body = Problem),
    ), security(("client" = [])))]
pub async fn cancel(gate: web::Data<Gate>, client: ApiClient, id: Id) -> Result<HttpResponse, Problem> {
    let elicitation = gate.cancel(&client.0, id.0).await?;
    Ok(HttpResponse::Ok().json(ElicitationView::of(&elicitation, &gate)))
}
