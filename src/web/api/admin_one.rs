//! For operators: one elicitation, and what happened to it.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::admin::OperatorView;
use crate::domain::{Actor, Event};
use crate::flow::Gate;
use crate::web::extract::caller::ApiOperator;
use crate::web::extract::id::Id;
use crate::web::problem::Problem;

/// An elicitation and its story.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoryView {
    #[serde(flatten)]
    elicitation: OperatorView,
    /// What happened, in the order of the audit trail.
    history: Vec<StepView>,
    /// Whether that is all: `false` if the trail is too long to look through.
    history_is_whole: bool,
}

/// One thing that happened.
#[derive(Serialize, ToSchema)]
pub struct StepView {
    at: String,
    /// As on the audit trail: `issued`, `opened`, `refused`, `completed` and so on.
    what: &'static str,
    /// Who did it.
    #[schema(value_type = Object)]
    actor: Actor,
    /// Why: a stable word for a refusal, the operator's own words for a revocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<Event> for StepView {
    fn from(Event { at, what, actor, reason, .. }: Event) -> Self {
        Self { at: at.to_string(), what: what.as_str(), actor, reason }
    }
}

/// Shows one, and what happened to it.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(get, path = "/v1/admin/elicitations/{id}", tag = "admin", params(("id" = String, Path)),
    responses(
        (status = 200, description = "How it stands, and what happened", body = StoryView),
        (status = 404, description = "`not_found`", body = Problem),
    ), security(("operator" = [])))]
pub async fn show(gate: web::Data<Gate>, _operator: ApiOperator, id: Id) -> Result<HttpResponse, Problem> {
    let elicitation = gate.look_up(id.0).await?;
    let history = gate.history(&elicitation).await?;
    Ok(HttpResponse::Ok().json(StoryView {
        elicitation: OperatorView::of(&elicitation, &gate),
        history: history.events.into_iter().map(StepView::from).collect(),
        history_is_whole: history.is_whole,
    }))
}
