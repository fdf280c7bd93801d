//! Who is at the browser: one file a source.
//!
//! A source finds out in one of four ways ([`Way`]): from each request, by a sign-in elsewhere, from the MCP server's own
//! login, or not at all, so that the handler must ask for a code.

pub mod confirm;
pub mod handoff;
pub mod loopback;
pub mod oidc;
pub mod proxy;
mod token;

use std::net::IpAddr;

use async_trait::async_trait;
use url::Url;

pub use token::SubjectClaim;

use crate::domain::Subject;
use crate::domain::binding::{length_prefixed, sha256};
use crate::domain::text::{Shape, plain};
use crate::upstream::metadata::DiscoveryError;
use crate::upstream::token::{Claims, Rejected};
use handoff::Handoff;

/// What a request tells about the browser that made it.
pub struct Browser<'a> {
    /// The address that the connection comes from.
    pub peer: IpAddr,
    /// Whether any header says that the request was forwarded.
    pub forwarded: bool,
    /// All values of a header by its name.
    pub header: &'a dyn Fn(&str) -> Vec<&'a str>,
    /// The value of a cookie by its name, if the browser sent one of that name and no more.
    pub cookie: &'a dyn Fn(&str) -> Option<String>,
}

/// Somebody whom an identity source has verified.
#[derive(Debug, Clone)]
pub struct Person {
    /// Who it is.
    pub subject: Subject,
    /// What the page calls the person.
    pub name: String,
    /// What page tokens are bound to.
    pub session: SessionId,
}

impl Person {
    /// Whoever has the link, where nobody finds out who that is.
    #[must_use]
    pub fn with_the_link(subject: &Subject) -> Self {
        Self { subject: subject.clone(), name: String::new(), session: SessionId::of("link", subject) }
    }
}

/// What people are called on a page.
pub const NAME: Shape = Shape { longest: 200, lines: false };

/// What the page calls a person: the first of these that can be shown, or the id. What a source passes on may have been
/// chosen by that person.
#[must_use]
pub fn shown_name<'a>(said: impl IntoIterator<Item = &'a str>, id: &'a str) -> String {
    let mut names = said.into_iter().chain([id]).filter_map(|name| plain("name", name, NAME).ok());
    names.next().unwrap_or_else(|| "somebody without a name".to_owned())
}

/// Stands for the sign-in of one person: 256 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionId(pub [u8; 32]);

impl std::fmt::Debug for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionId(…)")
    }
}

impl SessionId {
    /// The session of a person whom `source` verifies anew with every request.
    #[must_use]
    fn of(source: &str, subject: &Subject) -> Self {
        let covered = length_prefixed(&[source.as_bytes(), subject.issuer.as_bytes(), subject.id.as_bytes()]);
        Self(sha256(&covered))
    }
}

/// What an identity source found out.
#[derive(Debug)]
pub enum Identified {
    /// A verified person.
    Person(Person),
    /// Nobody.
    Nobody(Nobody),
    /// The source cannot tell now.
    Unavailable,
}

/// Why there is nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nobody {
    /// The browser brought nothing.
    Absent,
    /// What it brought is not accepted.
    Refused(Reason),
}

/// Why nobody is known: what a browser brought is not accepted, or an issuer does not do its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The connection does not come from this computer.
    NotLoopback,
    /// The header is there more than once.
    HeaderRepeated,
    /// The token that it brought is not accepted.
    Token(Rejected),
    /// It names nobody.
    SubjectMissing,
    /// The person signed in longer ago than is accepted.
    SignedInLongAgo,
    /// The person signed in by weaker means than are accepted.
    Means,
    /// A sign-in came back that nobody began, or began too long ago.
    SignInUnknown,
    /// A sign-in came back that had come back before.
    Replayed,
    /// A hand-off came back without a ticket that still counts.
    Ticket,
    /// A sign-in came back in another browser than the one that began it.
    OtherBrowser,
    /// They are no operator.
    NoOperator,
    /// The person said no at the issuer.
    Denied,
    /// The issuer answered with another error.
    IssuerError,
    /// The answer names another issuer (RFC 9207), or none where it should.
    AnsweringIssuer,
    /// The issuer did not accept the code.
    Code,
    /// The issuer gave no ID token.
    TokenMissing,
    /// The issuer's metadata cannot be had.
    MetadataUnavailable,
    /// The metadata is of another issuer, or names endpoints that must not be used.
    Metadata,
    /// The token endpoint does not answer.
    TokenUnavailable,
    /// The issuer's keys cannot be had.
    KeysUnavailable,
}

impl Reason {
    /// A stable word for the audit trail.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotLoopback => "not_loopback",
            Self::HeaderRepeated => "header_repeated",
            Self::Token(rejected) => rejected.code(),
            Self::SubjectMissing => "token_subject_missing",
            Self::SignedInLongAgo => "token_auth_time",
            Self::Means => "token_acr",
            Self::SignInUnknown => "sign_in_unknown",
            Self::Replayed => "sign_in_replayed",
            Self::Ticket => "handoff_ticket",
            Self::OtherBrowser => "sign_in_other_browser",
            Self::NoOperator => "sign_in_no_operator",
            Self::Denied => "sign_in_denied",
            Self::IssuerError => "sign_in_error",
            Self::AnsweringIssuer => "sign_in_issuer",
            Self::Code => "sign_in_code",
            Self::TokenMissing => "sign_in_token_missing",
            Self::MetadataUnavailable => "issuer_metadata_unavailable",
            Self::Metadata => "issuer_metadata",
            Self::TokenUnavailable => "issuer_token_unavailable",
            Self::KeysUnavailable => "issuer_keys_unavailable",
        }
    }
}

impl From<DiscoveryError> for SignInError {
    fn from(error: DiscoveryError) -> Self {
        Self::Unavailable(match error {
            DiscoveryError::Unavailable => Reason::MetadataUnavailable,
            DiscoveryError::NotAccepted => Reason::Metadata,
        })
    }
}

/// A way to find out who is at the browser.
pub trait IdentitySource: Send + Sync {
    /// The word for it in the configuration.
    fn word(&self) -> &'static str;

    /// Whether it can verify people of this issuer.
    fn vouches_for(&self, issuer: &str) -> bool;

    /// Whom a request means that names no subject; `None` where it must name one (R48).
    fn default_subject(&self) -> Option<Subject> {
        None
    }

    /// How it finds out.
    fn way(&self) -> Way<'_>;
}

/// How a source finds out who is at the browser.
pub enum Way<'a> {
    /// Every request tells.
    EachRequest(&'a dyn EachRequest),
    /// The browser signs in elsewhere and comes back; a session remembers who it is.
    SignIn(&'a dyn SignIn),
    /// The MCP server says who it is; a session remembers.
    Handoff(&'a Handoff),
    /// Nobody finds out: whoever has the link may act, and what they produce counts once its code came back
    /// through the MCP client.
    Code,
}

impl Way<'_> {
    /// Whether the browser signs in from our page.
    #[must_use]
    pub const fn signs_in(&self) -> bool {
        matches!(self, Self::SignIn(_) | Self::Handoff(_))
    }
}

/// A source that every request tells.
#[async_trait(?Send)]
pub trait EachRequest {
    /// Finds out who made a request.
    async fn identify(&self, browser: &Browser<'_>) -> Identified;
}

/// What ties a sign-in's return to its beginning. Kept here; only `state`, `nonce` and a digest of `verifier` leave.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub struct Ties {
    /// Comes back with the browser.
    pub state: String,
    /// Comes back in the ID token.
    pub nonce: String,
    /// Proves to the issuer that it is we who ask (RFC 7636).
    pub verifier: String,
    /// Where the browser comes back to.
    pub redirect_uri: String,
}

/// What the browser brought back.
#[derive(Debug, Default, Clone, Copy)]
pub struct Returned<'a> {
    /// The authorization code.
    pub code: Option<&'a str>,
    /// Who says so (RFC 9207).
    pub iss: Option<&'a str>,
    /// Why there is no code.
    pub error: Option<&'a str>,
}

/// Somebody who signed in.
pub struct SignedIn {
    /// Who it is.
    pub subject: Subject,
    /// What to call them.
    pub name: String,
    /// What the source says of them besides: the verified claims of the ID token.
    pub claims: Claims,
}

/// Why a sign-in did not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInError {
    /// It is not accepted.
    Refused(Reason),
    /// The issuer does not do its part now.
    Unavailable(Reason),
}

impl SignInError {
    /// Why.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Refused(reason) | Self::Unavailable(reason) => reason,
        }
    }
}

/// A source at which the browser signs in.
#[async_trait(?Send)]
pub trait SignIn {
    /// Where the browser is to go. `again`: the person wants to be asked who they are, whatever the issuer remembers.
    ///
    /// # Errors
    /// [`SignInError`].
    async fn begin(&self, ties: &Ties, again: bool) -> Result<Url, SignInError>;

    /// Who has signed in.
    ///
    /// # Errors
    /// [`SignInError`].
    async fn finish(&self, returned: Returned<'_>, ties: &Ties) -> Result<SignedIn, SignInError>;
}
