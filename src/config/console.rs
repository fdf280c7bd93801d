//! The section `[console]`: how operators come in.

use std::collections::BTreeMap;

use super::file::Console;
use super::{ConfigError, ConsoleSettings, IdentitySettings, OperatorDoor};

pub(super) fn checked(
    section: Console,
    identities: &BTreeMap<String, IdentitySettings>,
) -> Result<ConsoleSettings, ConfigError> {
    let Console { identity, claim, viewers, revokers, two_persons_above } = section;
    let refuse = |sentence: String| Err(ConfigError::new(sentence));
    let Some(identity) = identity else {
        if claim.is_some() || !viewers.is_empty() || !revokers.is_empty() {
            return refuse(
                "`console.claim`, `console.viewers` and `console.revokers` need `console.identity`: the name of the source where operators sign in".to_owned(),
            );
        }
        return Ok(ConsoleSettings { door: None, two_persons_above });
    };
    match identities.get(&identity) {
        Some(IdentitySettings::Oidc(_)) => {}
        Some(_) => return refuse(format!("`console.identity` is `{identity}`, which is not `oidc`")),
        None => {
            return refuse(format!("`console.identity` names no `[identity.{identity}]` section"));
        }
    }
    let Some(claim) = claim.filter(|claim| !claim.is_empty()) else {
        return refuse(
            "`console.claim` is needed with `console.identity`: without it whoever can sign in would be an operator".to_owned(),
        );
    };
    if viewers.iter().chain(&revokers).any(String::is_empty) || (viewers.is_empty() && revokers.is_empty()) {
        return refuse(
            "`console.viewers` or `console.revokers` must list values of `console.claim`, none of them empty"
                .to_owned(),
        );
    }
    Ok(ConsoleSettings { door: Some(OperatorDoor { identity, claim, viewers, revokers }), two_persons_above })
}
