//! One call for one round: the main door.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::ask::{AskBody, OAuthBody, OperationBody, PaymentBody, SecretBody, SubjectBody};
use super::elicitations::checked_attempt;
use crate::domain::text::{Shape, plain};
use crate::domain::{Code, ElicitationId, Invalid, Kind, Outcome, StateName};
use crate::flow::Gate;
use crate::flow::issue::Ask;
use crate::flow::poll::LONGEST_WAIT;
use crate::flow::round::{Action, AskCode, Entered, Round, RoundCall};
use crate::mcp::{self, ProtocolVersion, UrlElicitation};
use crate::web::extract::caller::ApiClient;
use crate::web::extract::json::Json;
use crate::web::problem::Problem;

/// One round of a tool call.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoundBody {
    #[schema(value_type = String, example = "secret")]
    kind: Kind,
    subject: Option<SubjectBody>,
    operation: OperationBody,
    message: String,
    expires_in: Option<u64>,
    secret: Option<SecretBody>,
    oauth: Option<OAuthBody>,
    /// What is to be paid, for kind `payment`.
    payment: Option<PaymentBody>,
    /// The key in `inputRequests`: `sidegate` if absent.
    input_key: Option<String>,
    /// `2026-07-28` or `2025-11-25`.
    #[schema(value_type = String, example = "2026-07-28")]
    protocol_version: ProtocolVersion,
    /// As the MCP client declared them. If they are given and `elicitation.url` is not among them, nothing is asked.
    #[schema(value_type = Option<Object>)]
    client_capabilities: Option<Map<String, Value>>,
    /// Seconds that a retry may wait here: 25 if absent, 50 at most.
    wait_seconds: Option<u64>,
    /// The handler's own name for this claim, to survive a lost answer.
    attempt: Option<String>,
    /// Exactly as the MCP client echoed it, if it did.
    request_state: Option<String>,
    /// Exactly as the MCP client sent them, if it did.
    #[schema(value_type = Option<Object>)]
    input_responses: Option<Map<String, Value>>,
}

const DEFAULT_WAIT: u64 = 25;
const DEFAULT_KEY: &str = "sidegate";

impl RoundBody {
    fn into_call(self, input_key: &str) -> Result<RoundCall, Invalid> {
        let Self { kind, subject, operation, message, expires_in, secret, oauth, payment, .. } = self;
        let responses = self.input_responses.as_ref();
        let response = |key: &str| responses.and_then(|all| Some((key.to_owned(), all.get(key)?)));
        let (link, form) = (response(input_key), response(&code_key(input_key)));
        let of_link = link.map(|(key, response)| action(&key, response)).transpose()?;
        let of_form = form.as_ref().map(|(key, response)| action(key, response)).transpose()?;
        // Who declines either declines the whole.
        let ended = [of_link, of_form].into_iter().flatten().find(|action| *action != Action::Accept);
        let code = form
            .and_then(|(_, response)| response.get("content")?.get(mcp::CODE))
            .map(|entered| entered.as_str().and_then(Code::read).map_or(Entered::Unreadable, Entered::Code));
        let ask = AskBody { kind, subject, operation, message, expires_in, secret, oauth, payment };
        Ok(RoundCall {
            ask: Ask::try_from(ask)?,
            form_mode: self.client_capabilities.as_ref().is_none_or(mcp::supports_form_mode),
            url_mode: self.client_capabilities.as_ref().is_none_or(mcp::supports_url_mode),
            echoes_state: self.protocol_version == ProtocolVersion::V2026_07_28,
            wait: Duration::from_secs(self.wait_seconds.unwrap_or(DEFAULT_WAIT)).min(LONGEST_WAIT),
            attempt: self.attempt.as_deref().map(checked_attempt).transpose()?,
            request_state: self.request_state,
            action: ended.or(of_link),
            code,
        })
    }
}

/// The key of the request for the code.
fn code_key(input_key: &str) -> String {
    format!("{input_key}_code")
}

fn action(input_key: &str, response: &Value) -> Result<Action, Invalid> {
    match response.get("action").and_then(Value::as_str) {
        Some("accept") => Ok(Action::Accept),
        Some("decline") => Ok(Action::Decline),
        Some("cancel") => Ok(Action::Cancel),
        _ => Err(Invalid::new(
            format!("inputResponses.{input_key}.action"),
            "must be `accept`, `decline` or `cancel`",
        )),
    }
}

/// What a round came to. Which of the other members is there depends on `outcome`.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoundView {
    /// `input_required`, `completed`, `declined`, `cancelled`, `expired`, `failed`, `revoked`, `consumed`,
    /// `unfinished` or `unsupported`.
    outcome: &'static str,
    /// The elicitation, except for `unsupported` and for what was kept from before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    id: Option<ElicitationId>,
    /// `input_required` in 2026-07-28: the `InputRequiredResult` to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    /// `input_required` in 2025-11-25: the JSON-RPC error to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
    /// `completed`: what the person produced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    credential: Option<Outcome>,
    /// All other outcomes: an MCP tool result that may be returned as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    tool_result: Option<Value>,
}

/// Takes part in one round of a tool call: asks for the link, waits on retry, claims what the person produced.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/rounds", tag = "rounds", request_body = RoundBody, responses(
    (status = 200, description = "What the round came to", body = RoundView),
    (status = 422, description = "`request_state_invalid` with `mcpError`, or `invalid_request` with the field", body = Problem),
    (status = 429, description = "`too_many_pending` or `too_many_requests`", body = Problem),
), security(("client" = [])))]
pub async fn round(
    gate: web::Data<Gate>,
    client: ApiClient,
    body: Json<RoundBody>,
) -> Result<HttpResponse, Problem> {
    let Json { value: body, mut caller, .. } = body;
    let (version, kind) = (body.protocol_version, body.kind);
    let shape = Shape { longest: 128, lines: false };
    let input_key = plain("inputKey", body.input_key.as_deref().unwrap_or(DEFAULT_KEY), shape)?;
    let round = gate.round(&client.0, body.into_call(&input_key)?, || caller.is_gone()).await?;
    let mut response = HttpResponse::Ok();
    if matches!(round, Round::Completed { replay: true, .. }) {
        response.insert_header(("Idempotent-Replay", "true"));
    }
    Ok(response.json(view(&gate, round, (version, kind), &input_key)))
}

fn view(gate: &Gate, round: Round, (version, kind): (ProtocolVersion, Kind), input_key: &str) -> RoundView {
    let said = |outcome, id, sentence: &str| RoundView {
        outcome,
        id,
        tool_result: Some(mcp::tool_result(version, sentence)),
        ..RoundView::default()
    };
    match round {
        Round::InputRequired { elicitation, request_state, prompt, code } => {
            let terms = elicitation.terms();
            let url = gate.link(terms.id);
            let asked = UrlElicitation { id: terms.id, url: &url, message: &terms.message };
            let id = Some(terms.id);
            let view = RoundView { outcome: "input_required", id, ..RoundView::default() };
            match version {
                ProtocolVersion::V2026_07_28 => {
                    let asked = prompt.then_some(asked);
                    let key = code_key(input_key);
                    let code = code.map(|code| (key.as_str(), mcp::code_sentence(code == AskCode::Again)));
                    let result = mcp::input_required_result(input_key, asked, code, &request_state);
                    RoundView { result: Some(result), ..view }
                }
                ProtocolVersion::V2025_11_25 => {
                    RoundView { error: Some(mcp::url_elicitation_required(asked)), ..view }
                }
            }
        }
        Round::Completed { id, outcome, replay: _ } => RoundView {
            outcome: StateName::Completed.as_str(),
            id,
            credential: Some(outcome),
            ..RoundView::default()
        },
        Round::Ended { id, state } => said(state.as_str(), Some(id), &mcp::ended_sentence_of(kind, state)),
        Round::Consumed { id } => said("consumed", Some(id), mcp::consumed_sentence(kind)),
        Round::Unfinished { id } => said("unfinished", Some(id), &mcp::unfinished_sentence(&gate.link(id))),
        Round::Unsupported => said("unsupported", None, mcp::UNSUPPORTED_SENTENCE),
    }
}
