//! The part of a request that says what is needed, for which operation, from whom.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::operation::{Identified, digest_of};
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
}

impl TryFrom<AskBody> for Ask {
    type Error = Invalid;

    fn try_from(body: AskBody) -> Result<Self, Invalid> {
        let request = match body.kind {
            Kind::Secret => {
                let form =
                    body.secret.ok_or_else(|| Invalid::new("secret", "is required for the kind `secret`"))?;
                Request::Secret(SecretRequest::new(form.fields.into_iter().map(FieldSpec::from).collect())?)
            }
        };
        let subject = body.subject.map(Subject::from);
        Self::new(subject, body.operation.into_operation()?, &body.message, request, body.expires_in)
    }
}
