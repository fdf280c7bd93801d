//! The wire shapes of the two MCP protocol versions, and the sentences that stand in them.
//!
//! 2026-07-28: a handler returns an `InputRequiredResult` and the client retries with `requestState`
//! (basic/patterns/mrtr, client/elicitation). 2025-11-25: a handler fails the call with error `-32042`
//! (SEP-1036) and the client retries on its own.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::domain::{ElicitationId, Kind, StateName};

/// A protocol version of the MCP client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProtocolVersion {
    /// Results of type `input_required`, with a request state.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
    /// Error `-32042`, without a request state.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
}

/// JSON-RPC code of the 2025-11-25 error that asks the client to open a URL.
pub const URL_ELICITATION_REQUIRED: i32 = -32042;
/// JSON-RPC code for parameters that cannot be accepted.
pub const INVALID_PARAMS: i32 = -32602;

/// A URL-mode elicitation as a client is to show it.
#[derive(Debug, Clone, Copy)]
pub struct UrlElicitation<'a> {
    /// The elicitation's id.
    pub id: ElicitationId,
    /// The page to open.
    pub url: &'a str,
    /// The client's sentence to the person.
    pub message: &'a str,
}

/// Whether a client with these declared capabilities can be asked to open a URL. `{"elicitation": {}}` means
/// form mode alone.
#[must_use]
pub fn supports_url_mode(capabilities: &Map<String, Value>) -> bool {
    capabilities
        .get("elicitation")
        .and_then(|elicitation| elicitation.get("url"))
        .is_some_and(Value::is_object)
}

/// Whether a client with these declared capabilities can be asked to show a form.
#[must_use]
pub fn supports_form_mode(capabilities: &Map<String, Value>) -> bool {
    let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
    elicitation.is_some_and(|modes| modes.is_empty() || modes.get("form").is_some_and(Value::is_object))
}

/// The member of a form's content that holds the code.
pub const CODE: &str = "code";

/// What the form says that asks for the code of the finished page; `again` after a wrong one.
#[must_use]
pub const fn code_sentence(again: bool) -> &'static str {
    if again {
        "That was not the code. Enter the 8 digits that the page shows when you are done there."
    } else {
        "When you are done on the page, it shows a code of 8 digits. Enter it here."
    }
}

fn code_request(message: &str) -> Value {
    let code = json!({"type": "string", "title": "Code from the page", "minLength": 8, "maxLength": 16});
    let schema = json!({"type": "object", "properties": {CODE: code}, "required": [CODE]});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

/// An `InputRequiredResult` (2026-07-28). Without `prompt` and without `code` (its key and its
/// sentence) it carries the request state alone, which makes the client retry without showing anything.
#[must_use]
pub fn input_required_result(
    input_key: &str,
    prompt: Option<UrlElicitation<'_>>,
    code: Option<(&str, &str)>,
    request_state: &str,
) -> Value {
    let mut requests = Map::new();
    if let Some(UrlElicitation { url, message, .. }) = prompt {
        let params = json!({"mode": "url", "url": url, "message": message});
        requests.insert(input_key.to_owned(), json!({"method": "elicitation/create", "params": params}));
    }
    if let Some((key, message)) = code {
        requests.insert(key.to_owned(), code_request(message));
    }
    let mut result = json!({"resultType": "input_required", "requestState": request_state});
    if let Some(object) = result.as_object_mut().filter(|_| !requests.is_empty()) {
        object.insert("inputRequests".to_owned(), Value::Object(requests));
    }
    result
}

/// The JSON-RPC error that asks a 2025-11-25 client to open a URL.
#[must_use]
pub fn url_elicitation_required(elicitation: UrlElicitation<'_>) -> Value {
    let UrlElicitation { id, url, message } = elicitation;
    json!({
        "code": URL_ELICITATION_REQUIRED,
        "message": format!("{message} Open this link in your browser, then try again: {url}"),
        "data": {"elicitations": [{"mode": "url", "elicitationId": id, "url": url, "message": message}]},
    })
}

/// The JSON-RPC error for a request state that is not accepted.
#[must_use]
pub fn request_state_invalid() -> Value {
    json!({
        "code": INVALID_PARAMS,
        "message": "The requestState is not valid for this request. Call the tool again without it.",
    })
}

/// A tool result that says in one plain sentence why the tool did not run.
#[must_use]
pub fn tool_result(version: ProtocolVersion, text: &str) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    if version == ProtocolVersion::V2026_07_28
        && let Some(object) = result.as_object_mut()
    {
        object.insert("resultType".to_owned(), json!("complete"));
    }
    result
}

/// What a tool says when its elicitation ended without an outcome.
#[must_use]
const fn ended_sentence(state: StateName) -> &'static str {
    match state {
        StateName::Declined => {
            "You declined the request, so this was not done. Ask again if you change your mind."
        }
        StateName::Cancelled => "The request was cancelled, so this was not done. Ask again to start over.",
        StateName::Expired => {
            "The time for the request ran out, so this was not done. Ask again to get a new link."
        }
        StateName::Revoked => {
            "An operator withdrew the request, so this was not done. Ask the operator of this service before you try again."
        }
        StateName::Failed
        | StateName::Pending
        | StateName::InProgress
        | StateName::Completed
        | StateName::Claimed => {
            "The request could not be completed, so this was not done. Ask again to start over."
        }
    }
}

/// The same for an elicitation of this kind: who may have paid must be told where their money is.
#[must_use]
pub fn ended_sentence_of(kind: Kind, state: StateName) -> String {
    let sentence = ended_sentence(state);
    match kind {
        Kind::Secret | Kind::OAuth => sentence.to_owned(),
        Kind::Payment => {
            format!(
                "{sentence} If you have paid all the same, open the link once more: it says what becomes of your money."
            )
        }
    }
}

/// What a tool says when another call has received the outcome.
#[must_use]
pub const fn consumed_sentence(kind: Kind) -> &'static str {
    match kind {
        Kind::Secret => {
            "What you entered was already used by another call of this tool. Ask again to enter it once more."
        }
        Kind::OAuth => {
            "The access that you gave was already used by another call of this tool. Ask again to give it once more."
        }
        Kind::Payment => {
            "What you paid for was already delivered by another call of this tool. Ask again only if you want to pay once more."
        }
    }
}

/// What a tool says when its client cannot open URLs.
pub const UNSUPPORTED_SENTENCE: &str = "This needs something from you that must be entered on a web page, and this \
application cannot open one for a tool. Use an application that supports MCP elicitation in URL mode.";

/// What a tool says when the person needs more time than the client's retries last.
#[must_use]
pub fn unfinished_sentence(url: &str) -> String {
    format!("This is still waiting for you. Finish it at {url} and ask me again when you are done.")
}
