//! The MCP server says who is at the browser that was sent to its `verify_url`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ask::SubjectBody;
use crate::domain::Subject;
use crate::flow::Gate;
use crate::web::extract::caller::ApiClient;
use crate::web::extract::json::Json;
use crate::web::problem::Problem;

/// Who is at the browser, by the MCP server's own session.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HandoffBody {
    /// The person.
    subject: SubjectBody,
    /// What the page calls the person: up to 200 characters; the subject's id if absent.
    name: Option<String>,
}

/// Where to send the browser now.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WayBackView {
    /// For one use, in the browser that was handed off.
    #[schema(example = "https://gate.example.com/handoff/…/return?ticket=…")]
    return_url: String,
    /// Until when.
    expires_at: String,
}

/// Accepts a hand-off.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/handoffs/{handoff}", tag = "handoffs", request_body = HandoffBody,
    params(("handoff" = String, Path, description = "As `verify_url` received it")),
    responses(
        (status = 200, description = "Redirect the browser to `returnUrl`", body = WayBackView),
        (status = 404, description = "`not_found`: unknown, over, used, or another client's", body = Problem),
        (status = 422, description = "`invalid`, with the field", body = Problem),
    ), security(("client" = [])))]
pub async fn accept(
    gate: web::Data<Gate>,
    client: ApiClient,
    request: HttpRequest,
    body: Json<HandoffBody>,
) -> Result<HttpResponse, Problem> {
    let handoff = request.match_info().get("handoff").unwrap_or_default();
    let HandoffBody { subject, name } = body.value;
    let back = gate.accept_handoff(&client.0, handoff, Subject::from(subject), name.as_deref()).await?;
    Ok(HttpResponse::Ok().json(WayBackView { return_url: back.url, expires_at: back.expires_at.to_string() }))
}
