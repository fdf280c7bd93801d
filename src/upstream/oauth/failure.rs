//! Why a provider did not do what it was asked to do, and the one table from its own words to that.

/// Why there are no tokens. Holds nothing that a provider wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The person said no there.
    #[error("the person declined there")]
    Denied,
    /// What came back is not an answer to what was asked, or not from this provider.
    #[error("{}", .0.code())]
    Refused(Fault),
    /// It did not work, and may the next time.
    #[error("{}", .0.code())]
    Passing(Fault),
    /// It can never work like this: the configuration and the provider do not agree.
    #[error("{}", .0.code())]
    Final(Fault),
}

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The answer names another issuer (RFC 9207), or none where it should.
    Issuer,
    /// A signed answer is missing, or its signature or its claims do not hold (JARM).
    SignedAnswer,
    /// The metadata cannot be had or is not accepted.
    Metadata,
    /// An endpoint does not answer.
    NoAnswer,
    /// The provider says that it does not work now.
    Unavailable,
    /// The provider answered the authorization request with an error.
    Error,
    /// It does not accept the code.
    Code,
    /// It does not accept the refresh token.
    RefreshToken,
    /// It does not accept us, or what we ask for.
    Configuration,
    /// Its answer has no token, or makes no sense.
    Answer,
    /// The ID token is not accepted.
    IdToken,
}

impl Fault {
    /// A stable word for the audit trail and the log.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Issuer => "provider_issuer",
            Self::SignedAnswer => "provider_signed_answer",
            Self::Metadata => "provider_metadata",
            Self::NoAnswer => "provider_no_answer",
            Self::Unavailable => "provider_unavailable",
            Self::Error => "provider_error",
            Self::Code => "provider_code",
            Self::RefreshToken => "provider_refresh_token",
            Self::Configuration => "provider_configuration",
            Self::Answer => "provider_answer",
            Self::IdToken => "provider_id_token",
        }
    }
}

/// Errors that say that we, or what we ask for, are not accepted: no retry helps. RFC 6749 §4.1.2.1 and §5.2, RFC 8707 §2,
/// RFC 9126 §2.3; then GitHub's and Slack's own words for the same.
const FINAL: [&str; 20] = [
    "invalid_client",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
    "unsupported_response_mode",
    "invalid_request",
    "invalid_request_object",
    "invalid_request_uri",
    "invalid_scope",
    "invalid_target",
    "invalid_redirect_uri",
    "incorrect_client_credentials",
    "redirect_uri_mismatch",
    "application_suspended",
    "bad_client_secret",
    "bad_redirect_uri",
    "invalid_client_id",
    "invalid_dpop_proof",
    "oauth_authorization_url_mismatch",
    "invalid_team_for_non_distributed_app",
];

/// Errors that say that a refresh token will never work again; those after the first are those of GitHub, Slack and `HubSpot`.
const DEAD: [&str; 7] = [
    "invalid_grant",
    "bad_refresh_token",
    "invalid_refresh_token",
    "token_revoked",
    "token_expired",
    "account_inactive",
    "BAD_REFRESH_TOKEN",
];

/// Errors that say that the provider does not work now; those after the second are Slack's, which come with any status.
pub(super) const UNAVAILABLE: [&str; 7] = [
    "server_error",
    "temporarily_unavailable",
    "internal_error",
    "fatal_error",
    "service_unavailable",
    "request_timeout",
    "ratelimited",
];

/// What an error of the authorization endpoint means.
pub(super) fn of_authorization(error: &str) -> Failure {
    match error {
        "access_denied" | "user_denied" | "consent_denied" => Failure::Denied,
        error if FINAL.contains(&error) => Failure::Final(Fault::Configuration),
        error if UNAVAILABLE.contains(&error) => Failure::Passing(Fault::Unavailable),
        _ => Failure::Passing(Fault::Error),
    }
}

/// What an error of a token endpoint means, to a code or to a refresh token.
pub(super) fn of_token(status: u16, error: Option<&str>, refreshes: bool) -> Failure {
    match (error, status) {
        (Some(error), _) if refreshes && DEAD.contains(&error) => Failure::Final(Fault::RefreshToken),
        // Whatever is wrong with us may be put right; what was granted is not lost for it.
        (Some(error), _) if FINAL.contains(&error) && refreshes => Failure::Passing(Fault::Configuration),
        (Some(error), _) if FINAL.contains(&error) => Failure::Final(Fault::Configuration),
        (Some(error), _) if UNAVAILABLE.contains(&error) => Failure::Passing(Fault::Unavailable),
        (_, 408 | 429 | 500..) => Failure::Passing(Fault::Unavailable),
        _ if refreshes => Failure::Passing(Fault::RefreshToken),
        _ => Failure::Passing(Fault::Code),
    }
}
