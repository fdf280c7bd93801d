//! The part of a request that says what is needed, for which operation, from whom.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::kept::Keep;
use crate::domain::oauth::OAuthRequest;
use crate::domain::operation::{Identified, digest_of};
use crate::domain::payment::PaymentRequest;
use crate::domain::secret::{FieldSpec, Format, SecretRequest};
use crate::domain::{Digest, Invalid, Kind, Operation, Request, Subject};
use crate::flow::issue::Ask;

/// The person: what the MCP server verified.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubjectBody {
    /// The `iss` of the verified token.
    #[schema(example = "https://idp.example")]
    issuer: String,
    /// The `sub` of the verified token.
    #[schema(example = "user-1")]
    id: String,
}

impl From<SubjectBody> for Subject {
    fn from(SubjectBody { issuer, id }: SubjectBody) -> Self {
        Self { issuer, id }
    }
}

/// What the tool call will do.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OperationBody {
    /// What is called.
    #[schema(example = "tools/call:forecast")]
    name: String,
    /// The call's arguments; only their digest is kept.
    arguments: Option<Value>,
    /// The caller's own id of this operation, if calls with equal arguments are to be different operations.
    id: Option<String>,
    /// SHA-256 over the RFC 8785 canonical JSON of `{name, arguments, id}`, instead of `arguments` and `id`.
    digest: Option<String>,
    /// One sentence that the person reads.
    #[schema(example = "Look up the weather in Oslo")]
    summary: Option<String>,
}

impl OperationBody {
    fn identified(&self) -> Result<Identified<'_>, Invalid> {
        match &self.digest {
            None => Ok(Identified::Parts(self.arguments.as_ref(), self.id.as_deref())),
            Some(_) if self.arguments.is_some() || self.id.is_some() => Err(Invalid::new(
                "operation.digest",
                "stands instead of `arguments` and `id`, not beside them",
            )),
            Some(digest) => Ok(Identified::Digest(digest)),
        }
    }

    /// The digest alone, for a claim.
    ///
    /// # Errors
    /// [`Invalid`] at `operation.…`.
    pub fn digest(&self) -> Result<Digest, Invalid> {
        digest_of(&self.name, self.identified()?)
    }

    fn into_operation(self) -> Result<Operation, Invalid> {
        let summary =
            self.summary.as_deref().ok_or_else(|| Invalid::new("operation.summary", "is required"))?;
        Operation::new(&self.name, self.identified()?, summary)
    }
}

/// The form of kind `secret`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretBody {
    /// 1 to 10 fields.
    #[schema(min_items = 1, max_items = 10)]
    fields: Vec<FieldBody>,
    /// Whether and how what is entered is kept for later rounds.
    keep: Option<KeepBody>,
}

/// What is asked of a third party, for kind `oauth`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OAuthBody {
    /// A provider of the configuration, by its id.
    #[schema(example = "github")]
    provider: String,
    /// What is needed; what the configuration says if absent or empty.
    #[serde(default)]
    scopes: Vec<String>,
    /// For which resource the token is to be (RFC 8707).
    resource: Option<String>,
    /// Whether and how the tokens are kept for later rounds.
    keep: Option<KeepBody>,
}

/// What is to be paid, for kind `payment`.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PaymentBody {
    /// A payment processor of the configuration, by its id.
    #[schema(example = "stripe")]
    provider: String,
    /// How much, in the currency's minor unit (ISO 4217): 1999 for 19.99 dollars, 500 for 500 yen.
    #[schema(minimum = 1, example = 1999)]
    amount: u64,
    /// A currency of ISO 4217, in capitals or not.
    #[schema(example = "usd")]
    currency: String,
    /// What for, as the person reads it here and at the processor. Up to 120 characters.
    #[schema(example = "Market report 2026, as PDF")]
    description: String,
    /// The caller's own name for it, by which the payment is found in the processor's books: up to 100 ASCII characters.
    #[schema(example = "order-42")]
    reference: String,
}

/// How an outcome is kept.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeepBody {
    /// The name that later rounds use, up to 64 characters.
    #[schema(example = "weatherco")]
    slot: String,
    /// For how many days: 1 to 365.
    days: u64,
}

impl KeepBody {
    fn into_keep(self, kind: Kind) -> Result<Keep, Invalid> {
        Keep::new(&format!("{kind}.keep"), &self.slot, self.days)
    }
}

/// One value to enter.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldBody {
    /// Names the value in the credential: a letter, then letters, digits, `_`, `-` or `.`.
    #[schema(example = "api_key")]
    name: String,
    /// What the person reads beside the input.
    #[schema(example = "WeatherCo API key")]
    label: String,
    /// A hint: where to find the value, for example.
    help: Option<String>,
    /// How it is entered: `password` if absent.
    #[serde(default)]
    #[schema(value_type = String, example = "password")]
    format: Format,
    /// Whether it may not be left out: `true` if absent.
    required: Option<bool>,
    /// Fewest characters: 0 if absent.
    min_length: Option<u64>,
    /// Most characters: 4096 if absent, 32768 at most.
    max_length: Option<u64>,
    /// A regular expression (without look-around) that the whole value must match.
    pattern: Option<String>,
}

impl From<FieldBody> for FieldSpec {
    fn from(body: FieldBody) -> Self {
        let FieldBody { name, label, help, format, required, min_length, max_length, pattern } = body;
        Self { name, label, help, format, required, min_length, max_length, pattern }
    }
}

/// What is needed, for which operation, from whom.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskBody {
    /// What is asked for.
    #[schema(value_type = String, example = "secret")]
    pub kind: Kind,
    /// The person it is for. May be absent only where the client's identity source knows just one.
    pub subject: Option<SubjectBody>,
    /// The operation it is for.
    pub operation: OperationBody,
    /// What is needed and why, to the person. Up to 1000 characters.
    #[schema(example = "Your WeatherCo API key is needed to look up the forecast.")]
    pub message: String,
    /// Seconds that the person has: 10 to 86400, 600 if absent.
    pub expires_in: Option<u64>,
    /// The form, for kind `secret`.
    pub secret: Option<SecretBody>,
    /// What is asked of a third party, for kind `oauth`.
    pub oauth: Option<OAuthBody>,
    /// What is to be paid, for kind `payment`.
    pub payment: Option<PaymentBody>,
}

impl TryFrom<AskBody> for Ask {
    type Error = Invalid;

    fn try_from(body: AskBody) -> Result<Self, Invalid> {
        let kind = body.kind;
        let given = [
            (Kind::Secret, body.secret.is_some()),
            (Kind::OAuth, body.oauth.is_some()),
            (Kind::Payment, body.payment.is_some()),
        ];
        if let Some((field, _)) = given.into_iter().find(|(of, given)| *given && *of != kind) {
            return Err(Invalid::new(field.as_str(), format!("is not for the kind `{kind}`")));
        }
        let needed = || Invalid::new(kind.as_str(), format!("is required for the kind `{kind}`"));
        let (request, keep) = match kind {
            Kind::Secret => {
                let form = body.secret.ok_or_else(needed)?;
                let fields = form.fields.into_iter().map(FieldSpec::from).collect();
                (Request::Secret(SecretRequest::new(fields)?), form.keep)
            }
            Kind::OAuth => {
                let OAuthBody { provider, scopes, resource, keep } = body.oauth.ok_or_else(needed)?;
                (Request::OAuth(OAuthRequest::new(provider, scopes, resource)?), keep)
            }
            Kind::Payment => {
                let PaymentBody { provider, amount, currency, description, reference } =
                    body.payment.ok_or_else(needed)?;
                let asked = PaymentRequest::new(provider, amount, &currency, &description, &reference)?;
                (Request::Payment(asked), None)
            }
        };
        let keep = keep.map(|keep| keep.into_keep(kind)).transpose()?;
        let subject = body.subject.map(Subject::from);
        let operation = body.operation.into_operation()?;
        Self::new(subject, operation, &body.message, request, body.expires_in, keep)
    }
}
