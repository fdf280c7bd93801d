//! What an elicitation asks for.

use serde::{Deserialize, Serialize};

use super::Kind;
use super::oauth::OAuthRequest;
use super::payment::PaymentRequest;
use super::secret::SecretRequest;

/// What is asked of the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Secret values, entered in a form.
    Secret(SecretRequest),
    /// An authorisation at a third party.
    OAuth(OAuthRequest),
    /// A payment.
    Payment(PaymentRequest),
}

impl Request {
    /// The kind of what is asked.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Secret(_) => Kind::Secret,
            Self::OAuth(_) => Kind::OAuth,
            Self::Payment(_) => Kind::Payment,
        }
    }
}

/// A part of a request that cannot be accepted. Says where and why, and never repeats the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct Invalid {
    /// Path of the field, as the caller wrote it: `secret.fields[2].label`.
    pub field: String,
    /// What is wrong, to be read after the field's name.
    pub problem: String,
}

impl Invalid {
    /// A complaint about one field.
    #[must_use]
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}
