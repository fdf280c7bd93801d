//! For operators: messages that a client's server did not take.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::domain::{ClientId, Invalid};
use crate::flow::Gate;
use crate::flow::notices::Dead;
use crate::web::extract::caller::ApiOperator;
use crate::web::extract::json::Json;
use crate::web::problem::Problem;

/// Whose messages to look for.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeadSearchBody {
    /// Of this client alone.
    client: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Messages that nobody took.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadPageView {
    webhooks: Vec<DeadView>,
    /// Where the next page begins, if there may be one; a page may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A message that nobody took.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadView {
    client: String,
    elicitation: String,
    /// Its name, `webhook-id`.
    id: String,
    /// `elicitation.completed`, `.declined`, `.expired`, `.revoked` or `.failed`.
    #[serde(rename = "type")]
    event: String,
    at: String,
    tries: u8,
}

impl DeadView {
    fn of(Dead { client, elicitation, notice }: &Dead) -> Self {
        Self {
            client: client.to_string(),
            elicitation: elicitation.to_string(),
            id: notice.id.clone(),
            event: notice.event(),
            at: notice.at.to_string(),
            tries: notice.tries,
        }
    }
}

/// Finds messages that nobody took within a day.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/admin/webhooks/search", tag = "admin", request_body = DeadSearchBody,
    responses((status = 200, description = "What was found", body = DeadPageView)),
    security(("operator" = [])))]
pub async fn search(
    gate: web::Data<Gate>,
    _operator: ApiOperator,
    body: Json<DeadSearchBody>,
) -> Result<HttpResponse, Problem> {
    let after = body.value.after.map(|after| after.parse()).transpose();
    let after = after.map_err(|_| Invalid::new("after", "must be the `next` of the page before"))?;
    let client = body.value.client.map(ClientId::new);
    let (found, next) = gate.dead_notices(client.as_ref(), after).await?;
    Ok(HttpResponse::Ok().json(DeadPageView {
        webhooks: found.iter().map(DeadView::of).collect(),
        next: next.map(|next| next.to_string()),
    }))
}

/// Which messages to try again.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryBody {
    /// All of this elicitation.
    elicitation: String,
}

/// Has the messages of an elicitation tried again that nobody took.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/admin/webhooks/retry", tag = "admin", request_body = RetryBody,
    responses(
        (status = 204, description = "They are tried again"),
        (status = 404, description = "`not_found`", body = Problem),
    ), security(("operator" = [])))]
pub async fn retry(
    gate: web::Data<Gate>,
    operator: ApiOperator,
    body: Json<RetryBody>,
) -> Result<HttpResponse, Problem> {
    let id = body.value.elicitation.parse();
    let id = id.map_err(|_| Invalid::new("elicitation", "must be an id of 32 hexadecimal digits"))?;
    gate.revive_notices(operator.0.revoker()?, id).await?;
    Ok(HttpResponse::NoContent().finish())
}
