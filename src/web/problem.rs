//! What the API answers when it does not do what it was asked: `application/problem+json` (RFC 9457) with a
//! stable `code`, and the one table that chooses it.

use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use serde_json::Value;

use crate::domain::{Invalid, Refusal};
use crate::flow;

/// A problem: small enough to be the error of any function.
#[derive(Debug, Clone, utoipa::ToSchema)]
pub struct Problem(#[schema(inline)] Box<ProblemBody>);

/// A problem, as the API writes it.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
struct ProblemBody {
    /// The HTTP status once more.
    status: u16,
    /// A stable word for programs.
    code: &'static str,
    /// The same for people, without particulars.
    title: &'static str,
    /// What is wrong and what to do.
    detail: String,
    /// The path of the field that is wrong, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The state in which the elicitation ended, where that is the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// A JSON-RPC error that an MCP server may return as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    mcp_error: Option<Value>,
    #[serde(skip)]
    retry_after: Option<Duration>,
    #[serde(skip)]
    allow: Option<&'static str>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.code)
    }
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self(Box::new(ProblemBody {
            status: status.as_u16(),
            code,
            title,
            detail: detail.into(),
            field: None,
            state: None,
            mcp_error: None,
            retry_after: None,
            allow: None,
        }))
    }

    fn at_field(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    fn in_state(mut self, state: &'static str) -> Self {
        self.0.state = Some(state);
        self
    }

    fn with_mcp_error(mut self, error: Value) -> Self {
        self.0.mcp_error = Some(error);
        self
    }

    fn after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// No key, or none that is known: no difference is made.
    #[must_use]
    pub fn unauthorized() -> Self {
        let detail = "Send `Authorization: Bearer` with a valid API key.";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "Not authorized", detail)
    }

    /// Unknown, erased, somebody else's, or misspelt: no difference is made.
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "Not found",
            "There is nothing here under that id or path.",
        )
    }

    /// The path is there, but answers another method alone.
    #[must_use]
    pub fn method_not_allowed(method: &'static str) -> Self {
        let detail = format!("This path answers {method} alone.");
        let mut problem =
            Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed", detail);
        problem.0.allow = Some(method);
        problem
    }

    /// The body cannot be read as JSON at all.
    #[must_use]
    pub fn malformed(field: String, problem: &str) -> Self {
        let detail = format!("{field} {problem}.");
        Self::new(StatusCode::BAD_REQUEST, "malformed_body", "Malformed body", detail).at_field(field)
    }

    /// The body is larger than is read.
    #[must_use]
    pub fn too_large(limit: usize) -> Self {
        let detail = format!("The body must have at most {limit} bytes.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "Body too large", detail).at_field("body")
    }

    /// The body did not arrive in time.
    #[must_use]
    pub fn too_slow() -> Self {
        let detail = "The body did not arrive in time; send it again.";
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "Body too slow", detail)
    }

    /// A code of the finished page that is not the one.
    #[must_use]
    pub fn wrong_code(tries_left: u8) -> Self {
        let detail = format!("That is not the code that the page shows; {tries_left} more may be tried.");
        Self::new(StatusCode::CONFLICT, "wrong_code", "Wrong code", detail)
    }

    /// Too many requests.
    #[must_use]
    pub fn too_many_requests(retry_after: Duration) -> Self {
        let detail = "Too many requests; try again after the time in Retry-After.";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", "Too many requests", detail)
            .after(retry_after)
    }

    /// The request was meant for another host.
    #[must_use]
    pub fn misdirected() -> Self {
        let detail = "This service does not answer under that host name.";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "misdirected_request", "Misdirected request", detail)
    }

    /// A webhook that is not believed, for the reason of this code.
    #[must_use]
    pub fn unverified(code: &'static str) -> Self {
        let detail = "The signature is missing, too old, or not made with a secret that is configured here.";
        Self::new(StatusCode::BAD_REQUEST, code, "Not verified", detail)
    }

    /// A webhook that cannot be dealt with now.
    #[must_use]
    pub fn later() -> Self {
        Self::unavailable()
    }

    fn unavailable() -> Self {
        let detail = "This cannot be done right now. Nothing was released; the same call may be tried again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Unavailable", detail)
            .after(Duration::from_secs(2))
    }

    /// The stable word.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.0.code
    }

    /// What is wrong and what to do.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<Invalid> for Problem {
    fn from(Invalid { field, problem }: Invalid) -> Self {
        let detail = format!("{field} {problem}.");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", "Invalid request", detail)
            .at_field(field)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let conflict = |title, detail: &str| Self::new(StatusCode::CONFLICT, refusal.code(), title, detail);
        match refusal {
            Refusal::WrongPerson => Self::new(
                StatusCode::FORBIDDEN,
                refusal.code(),
                "Wrong person",
                "The elicitation was made for another person.",
            ),
            Refusal::BindingMismatch => conflict(
                "Binding mismatch",
                "The subject or the operation is not the one that the elicitation was issued for. Nothing was consumed.",
            ),
            Refusal::NotCompleted => {
                conflict("Not completed", "The person has not finished yet; wait for the state `completed`.")
            }
            Refusal::Finished => conflict("Finished", "The person is done; only the code is missing."),
            Refusal::AlreadyClaimed => conflict(
                "Already claimed",
                "Another attempt has claimed the outcome; issue a new elicitation.",
            ),
            Refusal::PaymentUnclear => conflict(
                "Payment unclear",
                "Something was paid that is not what was asked for; it is looked into first.",
            ),
            Refusal::TooManyOrders => conflict(
                "Too many orders",
                "It was tried to be paid too often; issue a new elicitation.",
            ),
            Refusal::RefundNeeded => conflict(
                "Refund needed",
                "It is paid and nobody has claimed it yet. Send `refund: true` to revoke it and pay the money back.",
            )
            .at_field("refund"),
            Refusal::NoMoreTime => conflict("No more time", "The deadline cannot be moved further."),
            Refusal::Ended(state) => {
                conflict("Ended", &format!("The elicitation is {state}; it cannot change any more."))
                    .in_state(state.as_str())
            }
        }
    }
}

impl From<flow::Error> for Problem {
    fn from(error: flow::Error) -> Self {
        use flow::Error;
        match error {
            Error::NotFound => Self::not_found(),
            Error::Refused(refusal) => refusal.into(),
            Error::Invalid(invalid) => invalid.into(),
            Error::KindNotAllowed => Self::new(
                StatusCode::FORBIDDEN,
                "kind_not_allowed",
                "Kind not allowed",
                "This client may not ask for this kind; its `kinds` in the configuration say what it may ask for.",
            )
            .at_field("kind"),
            Error::NotRevoker => Self::new(
                StatusCode::FORBIDDEN,
                "role_missing",
                "Role missing",
                "This operator may look and not revoke; their `role` in the configuration says so.",
            ),
            Error::SecondOperator(most) => Self::new(
                StatusCode::CONFLICT,
                "second_operator_needed",
                "Second operator needed",
                format!("More than {most} match: one operator cannot revoke them alone. Narrow it down, or ask for it in the console, where a second operator can agree."),
            ),
            Error::IdempotencyMismatch => Self::new(
                StatusCode::CONFLICT,
                "idempotency_mismatch",
                "Idempotency key used before",
                "This Idempotency-Key was used with another body; use a new key for a new request.",
            ),
            Error::RequestStateInvalid => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "request_state_invalid",
                "Request state not valid",
                "requestState is forged, expired, or was made for another client, subject, operation or kind. Nothing was created.",
            )
            .at_field("requestState")
            .with_mcp_error(crate::mcp::request_state_invalid()),
            Error::NotKept => Self::new(
                StatusCode::NOT_FOUND,
                "not_kept",
                "Not kept",
                "Nothing is kept for this person in that slot; ask for it in a round that names the slot.",
            )
            .at_field("slot"),
            Error::ScopesMissing => Self::new(
                StatusCode::CONFLICT,
                "scopes_missing",
                "Scopes missing",
                "What is kept in that slot does not allow all of these scopes; ask for them in a round that names the slot.",
            )
            .at_field("scopes"),
            Error::FormRefused => Self::new(
                StatusCode::FORBIDDEN,
                "form_refused",
                "Form refused",
                "The form does not belong to this page.",
            ),
            Error::Full { whose, retry_after } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_pending",
                "Too many pending",
                format!("Too many elicitations are pending for this {whose}; let some end, or cancel them."),
            )
            .after(retry_after),
            Error::CallerGone => Self::unavailable(),
            Error::Unavailable(cause) => {
                tracing::error!(%cause, "a step could not be taken");
                Self::unavailable()
            }
        }
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status()
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status());
        response.insert_header((CONTENT_TYPE, "application/problem+json"));
        if self.status() == StatusCode::UNAUTHORIZED {
            response.insert_header((WWW_AUTHENTICATE, "Bearer"));
        }
        if let Some(retry_after) = self.0.retry_after {
            response.insert_header((RETRY_AFTER, retry_after.as_secs().max(1)));
        }
        if let Some(method) = self.0.allow {
            response.insert_header((ALLOW, method));
        }
        response.body(serde_json::to_vec(&self.0).unwrap_or_default())
    }
}
