//! The life of an elicitation, whatever is tried with it in whatever order and at whatever time.

use std::collections::BTreeSet;
use std::sync::Mutex;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sidegate::domain::{Elicitation, Refusal, State, StateName, Timestamp, What};

use super::walk::{Act, Granted, Seen, Who, acts, attempt_number, walk};
use crate::sample::{SPANS, START, terms};

const MANY: u32 = 400;

fn many() -> ProptestConfig {
    ProptestConfig { cases: MANY, failure_persistence: None, ..ProptestConfig::default() }
}

fn name(elicitation: &Elicitation) -> StateName {
    elicitation.state().name()
}

/// The states that an event leads from and to.
fn edge(what: What) -> (&'static [StateName], StateName) {
    use StateName::{Cancelled, Claimed, Completed, Declined, Expired, Failed, InProgress, Pending, Revoked};
    let live: &[StateName] = &[Pending, InProgress];
    let before_the_end: &[StateName] = &[Pending, InProgress, Completed];
    match what {
        What::Started => (&[Pending], InProgress),
        What::Retried => (&[InProgress], Pending),
        What::Completed => (&[InProgress], Completed),
        What::Claimed => (&[Completed], Claimed),
        What::Declined => (live, Declined),
        What::Cancelled => (live, Cancelled),
        What::Failed => (live, Failed),
        What::Expired => (before_the_end, Expired),
        What::Revoked => (before_the_end, Revoked),
        other => panic!("{other:?} changes no state"),
    }
}

/// What must come of an act, read off the design.
fn expected(seen: &Seen) -> Result<(), Refusal> {
    let state = name(&seen.before);
    let live = if state.is_live() { Ok(()) } else { Err(Refusal::Ended(state)) };
    match seen.act {
        Act::Claim(who, right, _) if who != Who::Subject || !right => Err(Refusal::BindingMismatch),
        Act::Claim(_, _, number) => match seen.before.state() {
            State::Completed { .. } => Ok(()),
            State::Claimed { attempt, at, .. } => {
                let again = *attempt == attempt_number(number) && seen.now < *at + SPANS.claim_window;
                if again { Ok(()) } else { Err(Refusal::AlreadyClaimed) }
            }
            State::Pending | State::InProgress { .. } | State::Unconfirmed { .. } => {
                Err(Refusal::NotCompleted)
            }
            _ => Err(Refusal::Ended(state)),
        },
        Act::Confirm(_) => match seen.before.state() {
            State::Unconfirmed { .. } | State::Completed { .. } | State::Claimed { .. } => Ok(()),
            State::Pending | State::InProgress { .. } => Err(Refusal::NotCompleted),
            _ => Err(Refusal::Ended(state)),
        },
        Act::Open(who)
        | Act::Start(who)
        | Act::Retry(who)
        | Act::Complete(who)
        | Act::Finish(who)
        | Act::DeclineOnPage(who)
        | Act::Extend(who)
            if who != Who::Subject =>
        {
            Err(Refusal::WrongPerson)
        }
        Act::Start(_) | Act::Complete(_) | Act::Finish(_) if seen.before.awaits_code().is_some() => {
            Err(Refusal::Finished)
        }
        Act::Extend(_) if seen.before.awaits_code().is_some() => Err(Refusal::NoMoreTime),
        Act::Extend(_) if state.is_live() && longest(seen) <= seen.before.expires_at() => {
            Err(Refusal::NoMoreTime)
        }
        Act::Revoke if state.is_terminal() => Err(Refusal::Ended(state)),
        Act::Settle | Act::Open(_) | Act::Revoke => Ok(()),
        _ => live,
    }
}

/// How far an extension reaches.
fn longest(seen: &Seen) -> Timestamp {
    (seen.before.expires_at() + terms().lifetime).min(START + SPANS.longest_life)
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn every_act_is_granted_or_refused_as_the_design_says(acts in acts()) {
        for seen in walk(&acts) {
            prop_assert_eq!(seen.result.map(|_| ()), expected(&seen), "{:?}", seen);
        }
    }

    #[test]
    fn a_terminal_state_never_changes_again(acts in acts()) {
        for seen in walk(&acts) {
            if name(&seen.before).is_terminal() {
                prop_assert_eq!(&seen.after, &seen.before);
            }
        }
    }

    #[test]
    fn r20_an_outcome_is_granted_for_the_first_time_at_most_once(acts in acts()) {
        let walked = walk(&acts);
        prop_assert!(walked.iter().filter(|seen| seen.is_first_claim()).count() <= 1);
    }

    #[test]
    fn r21_nothing_is_completed_or_released_after_revocation_or_expiry(acts in acts()) {
        let mut over = false;
        for seen in walk(&acts) {
            for happening in &seen.happened {
                let gives = matches!(happening.what, What::Completed | What::Claimed | What::Replayed);
                prop_assert!(!(over && gives), "{:?}", seen);
                over |= matches!(happening.what, What::Revoked | What::Expired);
            }
            if over {
                prop_assert!(!seen.after.holds_outcome(seen.now));
            }
        }
    }

    #[test]
    fn nothing_is_completed_after_the_persons_time_nor_claimed_after_the_claim_by_time(acts in acts()) {
        for seen in walk(&acts) {
            if let (State::Completed { at, claim_by }, true) = (seen.after.state(), seen.after != seen.before) {
                prop_assert!(*at == seen.now && seen.now < seen.before.expires_at());
                prop_assert_eq!(*claim_by, seen.now + SPANS.claim_by);
            }
            if let (State::Completed { claim_by, .. }, true) = (seen.before.state(), seen.is_first_claim()) {
                prop_assert!(seen.now < *claim_by);
            }
        }
    }

    #[test]
    fn r22_the_outcome_is_replayed_for_the_winner_alone_and_within_its_window_alone(acts in acts()) {
        let mut won = None;
        for seen in walk(&acts) {
            let Act::Claim(who, right, attempt) = seen.act else { continue };
            if seen.is_first_claim() {
                won = Some((attempt, seen.now));
                continue;
            }
            let may = won.is_some_and(|(winner, at)| attempt == winner && seen.now < at + SPANS.claim_window);
            let replayed = seen.result == Ok(Granted::Replay);
            prop_assert_eq!(replayed, may && right && who == Who::Subject, "{:?}", seen);
        }
    }

    #[test]
    fn r37_each_state_change_leaves_exactly_one_happening(acts in acts()) {
        for seen in walk(&acts) {
            let mut at = name(&seen.before);
            let mut changes = Vec::new();
            for happening in &seen.happened {
                prop_assert_eq!(happening.from, Some(at));
                at = happening.to;
                if happening.from == Some(happening.to) {
                    let noted = matches!(
                        happening.what,
                        What::Opened | What::Extended | What::Replayed | What::Finished | What::WrongCode
                    );
                    prop_assert!(noted, "{:?}", happening);
                    continue;
                }
                let (from, to) = edge(happening.what);
                prop_assert!(from.contains(&happening.from.unwrap()) && happening.to == to, "{:?}", happening);
                changes.push(happening.what);
            }
            prop_assert_eq!(at, name(&seen.after));
            // Completing from `pending` passes through `in_progress`.
            let two = changes == [What::Started, What::Completed];
            let changed = name(&seen.before) != name(&seen.after);
            prop_assert!(two || changes.len() == usize::from(changed), "{:?}", seen);
            let all: Vec<_> = seen.happened.iter().map(|happening| happening.what).collect();
            let finished = all == [What::Started, What::Finished] || all == [What::WrongCode, What::Failed];
            prop_assert!(all.len() <= 1 || two || finished, "{:?}", seen);
            let silent = seen.happened.is_empty();
            prop_assert_eq!(silent, seen.after == seen.before && seen.result != Ok(Granted::Replay));
        }
    }

    #[test]
    fn a_refusal_leaves_nothing_changed(acts in acts()) {
        for seen in walk(&acts) {
            if seen.result.is_err() {
                prop_assert_eq!(&seen.after, &seen.before);
                prop_assert!(seen.happened.is_empty());
            }
        }
    }

    #[test]
    fn r07_a_claim_that_does_not_fit_the_binding_consumes_nothing(acts in acts()) {
        // Left out of the walk, the ill-fitting claims make no difference to anything.
        let misfit = |act: &Act| matches!(act, Act::Claim(who, right, _) if *who != Who::Subject || !right);
        let without: Vec<_> = acts
            .iter()
            .map(|(pause, act)| (*pause, if misfit(act) { Act::Settle } else { act.clone() }))
            .collect();
        for (with, without) in walk(&acts).iter().zip(walk(&without)) {
            prop_assert_eq!(&with.after, &without.after);
            if misfit(&with.act) {
                prop_assert_eq!(with.result, Err(Refusal::BindingMismatch));
            }
        }
    }

    #[test]
    fn the_deadline_only_grows_and_never_past_the_longest_life(acts in acts()) {
        for seen in walk(&acts) {
            // A code has a time of its own.
            if seen.before.awaits_code().or(seen.after.awaits_code()).is_none() {
                prop_assert!(seen.after.expires_at() >= seen.before.expires_at());
                prop_assert!(seen.after.expires_at() <= START + SPANS.longest_life);
            }
        }
    }

    #[test]
    fn a_code_completes_once_and_five_wrong_ones_or_its_time_destroy_the_outcome(acts in acts()) {
        let mut wrong = 0;
        for seen in walk(&acts) {
            let waited = seen.before.awaits_code().is_some();
            if seen.happened.iter().any(|happening| happening.what == What::Finished) {
                wrong = 0;
                prop_assert!(seen.after.holds_outcome(seen.now) && !waited);
            }
            match seen.act {
                Act::Confirm(true) if waited => prop_assert_eq!(name(&seen.after), StateName::Completed),
                Act::Confirm(false) if waited => {
                    wrong += 1;
                    let destroyed = name(&seen.after) == StateName::Failed;
                    prop_assert_eq!(destroyed, wrong == 5);
                    prop_assert_eq!(seen.after.holds_outcome(seen.now), !destroyed);
                }
                _ if waited && seen.after.awaits_code().is_none() => {
                    prop_assert!(name(&seen.after).is_terminal() && !seen.after.holds_outcome(seen.now));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn opening_is_noted_once_and_only_while_it_is_live(acts in acts()) {
        let mut opened = 0;
        for seen in walk(&acts) {
            opened += seen.happened.iter().filter(|happening| happening.what == What::Opened).count();
            prop_assert_eq!(seen.after.opened_at().is_some(), opened == 1);
            if seen.after.opened_at() != seen.before.opened_at() {
                prop_assert!(name(&seen.before).is_live());
                prop_assert_eq!(seen.after.opened_at(), Some(seen.now));
            }
        }
    }

    #[test]
    fn r25_what_holds_an_outcome_or_may_still_change_comes_due_in_time(acts in acts()) {
        for seen in walk(&acts).iter().filter(|seen| matches!(seen.act, Act::Settle)) {
            let due = seen.after.due(seen.now, &SPANS);
            if !name(&seen.after).is_terminal() || seen.after.holds_outcome(seen.now) {
                prop_assert!(due > seen.now);
                prop_assert!(!seen.after.clone().settle(due).holds_outcome(due));
            }
        }
    }

    #[test]
    fn an_elicitation_is_the_same_after_it_was_written_and_read(acts in acts()) {
        let last = walk(&acts).pop().unwrap().after;
        let written = serde_json::to_vec(&last).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Elicitation>(&written).unwrap(), last);
    }
}

#[test]
fn the_random_walks_reach_every_state_and_every_answer() {
    let reached = Mutex::new(BTreeSet::new());
    let note = |what: String| _ = reached.lock().unwrap().insert(what);
    let walked = TestRunner::new(many()).run(&acts(), |acts| {
        for seen in walk(&acts) {
            note(name(&seen.after).to_string());
            note(match seen.result {
                Ok(granted) => format!("{granted:?}"),
                Err(refusal) => refusal.code().to_owned(),
            });
        }
        Ok(())
    });
    walked.unwrap();
    let mut wanted: BTreeSet<_> = StateName::ALL.iter().map(ToString::to_string).collect();
    wanted.extend(["Step", "Nothing", "FirstClaim", "Replay"].map(str::to_owned));
    wanted.extend(
        [
            Refusal::WrongPerson,
            Refusal::BindingMismatch,
            Refusal::Ended(StateName::Failed),
            Refusal::NotCompleted,
            Refusal::Finished,
            Refusal::AlreadyClaimed,
            Refusal::NoMoreTime,
        ]
        .map(|refusal| refusal.code().to_owned()),
    );
    assert_eq!(*reached.lock().unwrap(), wanted);
}

#[test]
fn issuing_is_the_first_happening() {
    let mut issued = Elicitation::issue(terms());
    assert_eq!(issued.state(), &State::Pending);
    assert_eq!(issued.expires_at(), START + terms().lifetime);
    let happened = issued.take_happened();
    assert_eq!(happened.len(), 1);
    assert_eq!(
        (happened[0].what, happened[0].from, happened[0].to),
        (What::Issued, None, StateName::Pending)
    );
}
