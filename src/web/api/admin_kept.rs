//! For operators: find what is kept and withdraw it. Never a credential.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::admin::{RevokedView, checked_limit};
use super::ask::SubjectBody;
use crate::domain::kept::Held;
use crate::domain::{ClientId, Invalid, Kind, Subject};
use crate::flow::Gate;
use crate::flow::revoke::Reason;
use crate::flow::withdraw::{KeptEntry, KeptFilter};
use crate::web::extract::caller::ApiOperator;
use crate::web::extract::json::Json;
use crate::web::problem::Problem;

/// What to look for. What is absent does not matter.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeptSearchBody {
    /// The one of this id.
    id: Option<String>,
    /// Kept for this client.
    client: Option<String>,
    /// Of this person.
    subject: Option<SubjectBody>,
    /// In the slot of this name.
    slot: Option<String>,
    /// Of this kind.
    #[schema(value_type = Option<String>)]
    kind: Option<Kind>,
    /// Tokens of this provider.
    provider: Option<String>,
    /// About so many, 1 to 200: 50 if absent.
    limit: Option<usize>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// Which are withdrawn, and why. At least one of the others must be named.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeptRevokeBody {
    /// The one of this id.
    id: Option<String>,
    /// Kept for this client.
    client: Option<String>,
    /// Of this person.
    subject: Option<SubjectBody>,
    /// In the slot of this name.
    slot: Option<String>,
    /// Of this kind.
    #[schema(value_type = Option<String>)]
    kind: Option<Kind>,
    /// Tokens of this provider.
    provider: Option<String>,
    /// One line of up to 200 characters, for the audit trail.
    reason: String,
}

/// What was found.
#[derive(Serialize, ToSchema)]
pub struct KeptSearchView {
    kept: Vec<KeptView>,
    /// Where the next page begins, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One thing that is kept, as operators see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptView {
    id: String,
    client: String,
    #[schema(value_type = SubjectBody)]
    subject: Subject,
    slot: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
    since: String,
    until: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_at: Option<String>,
}

impl From<KeptEntry> for KeptView {
    fn from(KeptEntry { client, subject, slot, grant }: KeptEntry) -> Self {
        let (provider, scopes) = match &grant.held {
            Held::Tokens { provider, sets, .. } => {
                (Some(provider.clone()), sets.iter().flat_map(|set| set.scopes.clone()).collect())
            }
            Held::Secret { .. } | Held::Ended { .. } => (None, Vec::new()),
        };
        Self {
            id: grant.id.to_string(),
            client: client.to_string(),
            subject,
            slot,
            kind: grant.held.kind().as_str(),
            provider,
            scopes,
            since: grant.since.to_string(),
            until: grant.until.to_string(),
            used_at: grant.used_at.map(|at| at.to_string()),
        }
    }
}

/// Finds what is kept.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/admin/kept/search", tag = "admin", request_body = KeptSearchBody,
    responses((status = 200, description = "What was found", body = KeptSearchView)),
    security(("operator" = [])))]
pub async fn search(
    gate: web::Data<Gate>,
    _operator: ApiOperator,
    body: Json<KeptSearchBody>,
) -> Result<HttpResponse, Problem> {
    let KeptSearchBody { id, client, subject, slot, kind, provider, limit, after } = body.value;
    let limit = checked_limit(limit)?;
    let after = after
        .map(|after| {
            after.parse().map_err(|_| Invalid::new("after", "must be the `next` of the page before"))
        })
        .transpose()?;
    let filter = filter(id, client, subject, (slot, kind, provider))?;
    let page = gate.search_kept(&filter, after, limit).await?;
    Ok(HttpResponse::Ok().json(KeptSearchView {
        kept: page.found.into_iter().map(KeptView::from).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}

/// Withdraws what matches: nothing of it is released any more, and its providers are told.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/admin/kept/revoke", tag = "admin", request_body = KeptRevokeBody,
    responses((status = 200, description = "How many were withdrawn", body = RevokedView)),
    security(("operator" = [])))]
pub async fn revoke(
    gate: web::Data<Gate>,
    operator: ApiOperator,
    body: Json<KeptRevokeBody>,
) -> Result<HttpResponse, Problem> {
    let KeptRevokeBody { id, client, subject, slot, kind, provider, reason } = body.value;
    let none = id.is_none()
        && client.is_none()
        && subject.is_none()
        && slot.is_none()
        && kind.is_none()
        && provider.is_none();
    if none {
        let problem = "or `client`, `subject`, `slot`, `kind` or `provider` must say which to withdraw";
        return Err(Invalid::new("id", problem).into());
    }
    let filter = filter(id, client, subject, (slot, kind, provider))?;
    let revoked = gate.withdraw_kept(operator.0.revoker()?, &filter, &Reason::new(&reason)?).await?;
    Ok(HttpResponse::Ok().json(RevokedView::of(revoked)))
}

fn filter(
    id: Option<String>,
    client: Option<String>,
    subject: Option<SubjectBody>,
    (slot, kind, provider): (Option<String>, Option<Kind>, Option<String>),
) -> Result<KeptFilter, Invalid> {
    let id = id
        .map(|id| id.parse().map_err(|_| Invalid::new("id", "must be the `id` of a search")))
        .transpose()?;
    let (client, subject) = (client.map(ClientId::new), subject.map(Subject::from));
    Ok(KeptFilter { id, client, subject, slot, kind, provider })
}
