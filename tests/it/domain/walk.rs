//! Random walks through the life of an elicitation, with everything that was seen on the way.

use std::time::Duration;

use proptest::prelude::*;
use sidegate::domain::{
    Attempt, Claim, Code, Confirmation, Digest, Elicitation, Happening, OperatorId, Refusal, Subject, Theirs,
    Timestamp,
};

use crate::sample::{SPANS, START, subject, terms};

/// Something that somebody tries.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Nobody does anything: time is applied.
    Settle,
    Open(Who),
    Start(Who),
    Retry(Who),
    Complete(Who),
    Finish(Who),
    /// Whether with the right code.
    Confirm(bool),
    DeclineOnPage(Who),
    Extend(Who),
    DeclineInClient,
    Cancel,
    Fail,
    Revoke,
    /// Who asks, whether for the right operation, and the number of the attempt.
    Claim(Who, bool, u8),
}

/// The person an act is done in the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Subject,
    SameIdOtherIssuer,
    SameIssuerOtherId,
    Swapped,
    Nobody,
}

impl Who {
    fn person(self) -> Subject {
        let right = subject("user-1");
        match self {
            Self::Subject => right,
            Self::SameIdOtherIssuer => Subject { issuer: "https://other.example".to_owned(), ..right },
            Self::SameIssuerOtherId => Subject { id: "User-1".to_owned(), ..right },
            Self::Swapped => Subject { issuer: right.id, id: right.issuer },
            Self::Nobody => Subject { issuer: String::new(), id: String::new() },
        }
    }
}

/// What an act that was not refused came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Granted {
    Step,
    /// There was nothing to do.
    Nothing,
    FirstClaim,
    Replay,
}

/// One act and what it did.
#[derive(Debug)]
pub(super) struct Seen {
    pub act: Act,
    pub now: Timestamp,
    pub before: Elicitation,
    pub result: Result<Granted, Refusal>,
    pub after: Elicitation,
    pub happened: Vec<Happening>,
}

impl Seen {
    pub(super) fn is_first_claim(&self) -> bool {
        self.result == Ok(Granted::FirstClaim)
    }
}

/// Acts with the time that passes before each.
pub(super) fn acts() -> impl Strategy<Value = Vec<(Duration, Act)>> {
    prop::collection::vec((pause(), act()), 1..40)
}

/// Often none, often exactly at an edge of some deadline, sometimes anything.
fn pause() -> impl Strategy<Value = Duration> {
    let edges = [300_000, 600_000, 900_000, 3_600_000];
    prop_oneof![
        6 => Just(0),
        3 => 1_u64..30_000,
        1 => (prop::sample::select(edges.to_vec()), 0_u64..=2).prop_map(|(edge, off)| edge - 1 + off),
    ]
    .prop_map(Duration::from_millis)
}

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        12 => Just(Who::Subject),
        1 => Just(Who::SameIdOtherIssuer),
        1 => Just(Who::SameIssuerOtherId),
        1 => Just(Who::Swapped),
        1 => Just(Who::Nobody),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Settle),
        4 => who().prop_map(Act::Open),
        4 => who().prop_map(Act::Start),
        3 => who().prop_map(Act::Retry),
        4 => who().prop_map(Act::Complete),
        3 => who().prop_map(Act::Finish),
        8 => prop::bool::weighted(0.2).prop_map(Act::Confirm),
        1 => who().prop_map(Act::DeclineOnPage),
        4 => who().prop_map(Act::Extend),
        1 => Just(Act::DeclineInClient),
        1 => Just(Act::Cancel),
        1 => Just(Act::Fail),
        1 => Just(Act::Revoke),
        8 => (who(), prop::bool::weighted(0.9), 0_u8..3).prop_map(|(who, right, n)| Act::Claim(who, right, n)),
    ]
}

/// Issues an elicitation and lets the acts happen to it. As everywhere in the service, time is applied before
/// each act.
pub(super) fn walk(acts: &[(Duration, Act)]) -> Vec<Seen> {
    let mut elicitation = Elicitation::issue(terms());
    let _ = elicitation.take_happened();
    let mut now = START;
    let mut seen = Vec::new();
    for (pause, act) in acts {
        now = now + *pause;
        for act in [Act::Settle, act.clone()] {
            let before = elicitation.clone();
            let (result, mut after) = match take(&act, elicitation.clone(), now) {
                Ok((granted, after)) => (Ok(granted), after),
                Err(refusal) => (Err(refusal), elicitation),
            };
            let happened = after.take_happened();
            elicitation = after.clone();
            seen.push(Seen { act, now, before, result, after, happened });
        }
    }
    seen
}

fn take(act: &Act, one: Elicitation, now: Timestamp) -> Result<(Granted, Elicitation), Refusal> {
    let by = |who: Who, one: Elicitation| one.opened_by(&who.person());
    let before = one.clone();
    let after = match *act {
        Act::Settle => one.settle(now),
        Act::Open(who) => by(who, one)?.open(now).into_inner(),
        Act::Start(who) => by(who, one)?.start(now)?.into_inner(),
        Act::Retry(who) => by(who, one)?.retry().map(Theirs::into_inner)?,
        Act::Complete(who) => by(who, one)?.complete(vec!["api_key".to_owned()], now, &SPANS)?,
        Act::Finish(who) => {
            by(who, one)?.finish(vec!["api_key".to_owned()], code("12345678"), [7; 32], now)?
        }
        Act::Confirm(right) => {
            match one.confirm(&code(if right { "1234-5678" } else { "12345679" }), now, &SPANS)? {
                Confirmation::Right(after) | Confirmation::Destroyed(after) => after,
                Confirmation::Wrong { elicitation, .. } => elicitation,
                Confirmation::Before => return Ok((Granted::Nothing, before)),
            }
        }
        Act::DeclineOnPage(who) => by(who, one)?.decline(now)?,
        Act::Extend(who) => by(who, one)?.extend(&SPANS)?,
        Act::DeclineInClient => one.decline(now)?,
        Act::Cancel => one.cancel(now)?,
        Act::Fail => one.fail(now)?,
        Act::Revoke => one.revoke(OperatorId::new("ops"), "suspicious".to_owned(), false, now)?,
        Act::Claim(who, right, attempt) => return claim(who, right, attempt, one, now),
    };
    Ok((Granted::Step, after))
}

fn code(digits: &str) -> Code {
    Code::read(digits).unwrap()
}

fn claim(
    who: Who,
    right: bool,
    attempt: u8,
    one: Elicitation,
    now: Timestamp,
) -> Result<(Granted, Elicitation), Refusal> {
    let other = Digest::of("tools/call:transfer", None, None).unwrap();
    let digest = if right { one.terms().operation.digest } else { other };
    Ok(match one.claim(&who.person(), digest, attempt_number(attempt), now, &SPANS)? {
        Claim::First(after) => (Granted::FirstClaim, after),
        Claim::Replay(after) => (Granted::Replay, after),
    })
}

pub(super) fn attempt_number(number: u8) -> Attempt {
    Attempt::named(&format!("attempt {number}"))
}
