//! What is kept of a person: a handler uses it, or says that it does not work any more.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ask::SubjectBody;
use crate::domain::kept::checked_slot;
use crate::domain::oauth::checked_scopes;
use crate::domain::{Outcome, Subject};
use crate::flow::Gate;
use crate::web::extract::caller::ApiClient;
use crate::web::extract::json::Json;
use crate::web::problem::Problem;

/// Which kept credential is wanted.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UseBody {
    /// The person.
    subject: Option<SubjectBody>,
    /// The name under which it is kept.
    #[schema(example = "weatherco")]
    slot: String,
    /// What a token must allow.
    #[serde(default)]
    scopes: Vec<String>,
}

/// A kept credential, released.
#[derive(Serialize, ToSchema)]
pub struct UsedView {
    /// As a claim gives it; a token is fresh, and comes without its refresh token.
    #[schema(value_type = Object)]
    credential: Outcome,
}

/// Releases what is kept, renewed if it must be.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/kept/use", tag = "kept", request_body = UseBody,
    responses(
        (status = 200, description = "The credential", body = UsedView),
        (status = 404, description = "`not_kept`: ask the person, in a round", body = Problem),
        (status = 409, description = "`scopes_missing`: ask the person for more, in a round", body = Problem),
        (status = 503, description = "`unavailable`, also if the provider does not renew it now", body = Problem),
    ), security(("client" = [])))]
pub async fn use_it(
    gate: web::Data<Gate>,
    client: ApiClient,
    body: Json<UseBody>,
) -> Result<HttpResponse, Problem> {
    let UseBody { subject, slot, scopes } = body.value;
    let (slot, scopes) = (checked_slot("slot", &slot)?, checked_scopes("scopes", scopes)?);
    let credential = gate.use_kept(&client.0, subject.map(Subject::from), &slot, &scopes).await?;
    Ok(HttpResponse::Ok().json(UsedView { credential }))
}

/// Which kept credential does not work any more.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiscardBody {
    /// The person.
    subject: Option<SubjectBody>,
    /// The name under which it is kept.
    slot: String,
    /// Why, in one line for the person: up to 200 characters.
    #[schema(example = "WeatherCo refused the key.")]
    reason: Option<String>,
}

/// Whether anything is kept.
#[derive(Serialize, ToSchema)]
pub struct DiscardedView {
    kept: bool,
}

/// Ends what is kept: the next round asks again, and its page says why.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/kept/discard", tag = "kept", request_body = DiscardBody,
    responses((status = 200, description = "Nothing is kept there now", body = DiscardedView)),
    security(("client" = [])))]
pub async fn discard(
    gate: web::Data<Gate>,
    client: ApiClient,
    body: Json<DiscardBody>,
) -> Result<HttpResponse, Problem> {
    let DiscardBody { subject, slot, reason } = body.value;
    let slot = checked_slot("slot", &slot)?;
    gate.discard_kept(&client.0, subject.map(Subject::from), &slot, reason.as_deref()).await?;
    Ok(HttpResponse::Ok().json(DiscardedView { kept: false }))
}
