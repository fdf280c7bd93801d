//! Who is at the browser: one file a source.

pub mod loopback;
pub mod proxy;

use std::net::IpAddr;

use async_trait::async_trait;

use crate::domain::Subject;
use crate::domain::binding::length_prefixed;

/// What a request tells about the browser that made it.
pub struct Browser<'a> {
    /// The address that the connection comes from.
    pub peer: IpAddr,
    /// Whether any header says that the request was forwarded.
    pub forwarded: bool,
    /// All values of a header by its name.
    pub header: &'a dyn Fn(&str) -> Vec<&'a str>,
}

/// Somebody whom an identity source has verified.
#[derive(Debug, Clone)]
pub struct Person {
    /// Who it is.
    pub subject: Subject,
    /// What the page calls the person.
    pub name: String,
    /// What page tokens are bound to.
    pub session: Session,
}

/// Stands for the sign-in of one person: 256 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Session(pub [u8; 32]);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session(…)")
    }
}

impl Session {
    /// The session of a person whom `source` verifies anew with every request.
    #[must_use]
    fn of(source: &str, subject: &Subject) -> Self {
        let covered = length_prefixed(&[source.as_bytes(), subject.issuer.as_bytes(), subject.id.as_bytes()]);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &covered).as_ref());
        Self(bytes)
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

/// Why what a browser brought is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The connection does not come from this computer.
    NotLoopback,
    /// The header is there more than once.
    HeaderRepeated,
    /// No signed token.
    Malformed,
    /// An algorithm that is not on the list, or not the key's.
    Algorithm,
    /// A key that the issuer does not publish.
    KeyUnknown,
    /// The signature does not hold.
    Signature,
    /// Another issuer's.
    Issuer,
    /// For another audience.
    Audience,
    /// No longer, or not yet, valid.
    Time,
    /// It names nobody.
    SubjectMissing,
}

impl Reason {
    /// A stable word for the audit trail.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotLoopback => "not_loopback",
            Self::HeaderRepeated => "header_repeated",
            Self::Malformed => "token_malformed",
            Self::Algorithm => "token_algorithm",
            Self::KeyUnknown => "token_key_unknown",
            Self::Signature => "token_signature",
            Self::Issuer => "token_issuer",
            Self::Audience => "token_audience",
            Self::Time => "token_time",
            Self::SubjectMissing => "token_subject_missing",
        }
    }
}

/// A way to find out who is at the browser.
#[async_trait(?Send)]
pub trait IdentitySource: Send + Sync {
    /// The word for it in the configuration.
    fn word(&self) -> &'static str;

    /// Whether it can verify people of this issuer.
    fn vouches_for(&self, issuer: &str) -> bool;

    /// Whom a request means that names no subject; `None` where it must name one (R48).
    fn default_subject(&self) -> Option<Subject>;

    /// Finds out who made a request.
    async fn identify(&self, browser: &Browser<'_>) -> Identified;
}
