//! An elicitation as the API shows it. Never an outcome.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{Elicitation, Request, State};
use crate::flow::Gate;

/// An elicitation and where it stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationView {
    /// 32 lower-case hexadecimal digits.
    id: String,
    kind: &'static str,
    /// `pending`, `in_progress`, `completed`, `claimed`, `declined`, `cancelled`, `expired`, `failed` or `revoked`.
    state: &'static str,
    /// The page for the person.
    url: String,
    message: String,
    operation: OperationView,
    /// RFC 3339, UTC, like all times here.
    created_at: String,
    /// When the verified person first saw the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened_at: Option<String>,
    /// When the person's time ends.
    expires_at: String,
    /// `true` while the person is done and the code of the finished page has not come back (identity source `confirm`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    awaits_code: bool,
    /// When an outcome that nobody has claimed is destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    claim_by: Option<String>,
    /// What is to be paid, for kind `payment`.
    #[serde(skip_serializing_if = "Option::is_none")]
    payment: Option<PaymentView>,
}

/// What is to be paid, and how far that is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentView {
    provider: String,
    reference: String,
    /// In the currency's minor unit.
    amount: u64,
    /// ISO 4217, in small letters.
    currency: String,
    /// Of the last order, once the person has pressed Pay: `opening`, `open`, `processing`, `closed`, `paid`, `refunding`,
    /// `refunded` or `held`.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'static str>,
}

impl PaymentView {
    fn of(elicitation: &Elicitation) -> Option<Self> {
        let Request::Payment(request) = &elicitation.terms().request else { return None };
        Some(Self {
            provider: request.provider.clone(),
            reference: request.reference.clone(),
            amount: request.money.amount,
            currency: request.money.currency.code().to_ascii_lowercase(),
            order: elicitation.orders().last().map(|order| order.stage.as_str()),
        })
    }
}

/// An operation without its arguments.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationView {
    name: String,
    digest: String,
    summary: String,
}

impl ElicitationView {
    /// The view of an elicitation.
    #[must_use]
    pub fn of(elicitation: &Elicitation, gate: &Gate) -> Self {
        let terms = elicitation.terms();
        Self {
            id: terms.id.to_string(),
            kind: terms.kind().as_str(),
            state: elicitation.state().name().as_str(),
            url: gate.link(terms.id),
            message: terms.message.clone(),
            operation: OperationView {
                name: terms.operation.name.clone(),
                digest: terms.operation.digest.to_string(),
                summary: terms.operation.summary.clone(),
            },
            created_at: terms.created_at.to_string(),
            opened_at: elicitation.opened_at().map(|at| at.to_string()),
            expires_at: elicitation.expires_at().to_string(),
            awaits_code: elicitation.awaits_code().is_some(),
            claim_by: match elicitation.state() {
                State::Completed { claim_by, .. } => Some(claim_by.to_string()),
                _ => None,
            },
            payment: PaymentView::of(elicitation),
        }
    }
}
