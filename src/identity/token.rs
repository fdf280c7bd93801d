//! Whom a signed token names: which of its claims are the person's id, and what to call that person.

use super::Reason;
use crate::domain::Subject;
use crate::upstream::token::{Claims, text};

/// Which claims name the person, for example `sub`, or `tid+oid` for two that are joined by a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectClaim(Vec<String>);

impl SubjectClaim {
    /// Reads the setting. `None` if a part of it is empty.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.split('+').map(str::to_owned).collect();
        parts.iter().all(|part| !part.is_empty()).then_some(Self(parts))
    }

    /// The person's id, if every claim is there. What is joined must not hold a colon itself.
    fn find(&self, claims: &Claims) -> Option<String> {
        let parts: Option<Vec<_>> = self.0.iter().map(|name| text(claims, name)).collect();
        let parts = parts?;
        (parts.len() == 1 || parts.iter().all(|part| !part.contains(':'))).then(|| parts.join(":"))
    }
}

/// Whom verified claims name, and what to call them.
pub(super) fn person(
    claims: &Claims,
    issuer: &str,
    claim: &SubjectClaim,
) -> Result<(Subject, String), Reason> {
    let id = claim.find(claims).ok_or(Reason::SubjectMissing)?;
    // Anybody can claim an address that the issuer has not verified.
    let unverified = claims.get("email_verified").is_some_and(|verified| *verified == false);
    let said =
        ["email", "name", "preferred_username"].into_iter().filter(|name| !(unverified && *name == "email"));
    let name = super::shown_name(said.filter_map(|name| text(claims, name)), &id);
    Ok((Subject { issuer: issuer.to_owned(), id }, name))
}
