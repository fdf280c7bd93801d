//! An elicitation of kind payment and its orders, whatever is heard of them in whatever order: nothing is delivered twice, and
//! all money that comes is an outcome, or goes back, or waits for an operator.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use sidegate::domain::money::Money;
use sidegate::domain::order::{Late, Opened, Order, Stage, Statement, Status};
use sidegate::domain::payment::PaymentRequest;
use sidegate::domain::{Elicitation, OperatorId, Refusal, Request, StateName, Subject, Terms, Timestamp};

use crate::sample::{SPANS, START, subject, terms};

/// Something that happens to the elicitation, at a processor or here.
#[derive(Debug, Clone)]
enum Event {
    /// The person presses Pay.
    Pay,
    /// The processor has opened the order of this number.
    Opened(usize),
    /// The opening was refused, or the order was closed by us.
    Closed(usize),
    /// The processor is asked, and says this.
    Heard(usize, Said),
    /// What was to be paid back is.
    Refunded(usize),
    /// It cannot be.
    NotRefunded(usize),
    /// The sweep looks at what is due.
    Sweep,
    Decline,
    Cancel,
    /// Whether with `refund: true`.
    Revoke(bool),
    Claim,
}

#[derive(Debug, Clone)]
struct Said {
    status: Word,
    /// Whether the processor knows our name for it.
    named: bool,
    /// Whether the amount is right.
    exact: bool,
    /// Whether it is said of the same order of the processor's as before.
    same_id: bool,
    livemode: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
enum Word {
    Open,
    Approved,
    Processing,
    Paid,
    Closed,
    Refunded,
}

fn events() -> impl Strategy<Value = Vec<(Duration, Event)>> {
    prop::collection::vec((pause(), event()), 1..80)
}

fn pause() -> impl Strategy<Value = Duration> {
    prop_oneof![
        12 => (0_u64..30_000).prop_map(Duration::from_millis),
        1 => (0_u64..3_600).prop_map(Duration::from_secs),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    // The last order most of the time, and now and then any.
    let which = || prop_oneof![4 => Just(usize::MAX), 1 => 0_usize..24];
    let word = prop::sample::select(vec![
        Word::Open,
        Word::Approved,
        Word::Processing,
        Word::Paid,
        Word::Paid,
        Word::Closed,
        Word::Refunded,
    ]);
    let livemode = prop_oneof![2 => Just(None), 6 => Just(Some(true)), 1 => Just(Some(false))];
    let weighted = prop::bool::weighted;
    let said = (word, weighted(0.9), weighted(0.9), weighted(0.95), livemode).prop_map(
        |(status, named, exact, same_id, livemode)| Said { status, named, exact, same_id, livemode },
    );
    prop_oneof![
        8 => Just(Event::Pay),
        8 => which().prop_map(Event::Opened),
        4 => which().prop_map(Event::Closed),
        8 => (which(), said).prop_map(|(which, said)| Event::Heard(which, said)),
        2 => which().prop_map(Event::Refunded),
        1 => which().prop_map(Event::NotRefunded),
        3 => Just(Event::Sweep),
        1 => Just(Event::Decline),
        1 => Just(Event::Cancel),
        1 => any::<bool>().prop_map(Event::Revoke),
        2 => Just(Event::Claim),
    ]
}

fn asked() -> Money {
    Money { amount: 1999, currency: "USD".parse().unwrap() }
}

fn payment() -> Terms {
    let request = PaymentRequest::new("shop".into(), 1999, "usd", "A report", "report-1").unwrap();
    Terms { request: Request::Payment(request), ..terms() }
}

/// The elicitation with what was seen on the way.
struct Life {
    one: Elicitation,
    late: Late,
    receipts: usize,
    claims: usize,
    /// Which orders money came for, by what was said of them.
    money_in: BTreeSet<usize>,
}

impl Life {
    fn order(&self, which: usize) -> Option<(usize, &Order)> {
        let number = which.min(self.one.orders().len().checked_sub(1)?);
        self.one.orders().get(number).map(|order| (number, order))
    }

    /// Lets an event happen; whether it could be at all.
    fn take(&mut self, event: &Event, now: Timestamp) -> Result<(), Refusal> {
        let one = self.one.clone();
        self.one = match event {
            Event::Pay => {
                let name = format!("order-{}", one.orders().len());
                let from = "https://gate.example".to_owned();
                let order = Order::new(name, from, one.expires_at(), self.late, now);
                one.opened_by(&subject("user-1"))?.order(order, now)?.into_inner()
            }
            Event::Opened(which) => {
                let Some((number, order)) = self.order(*which) else { return Ok(()) };
                let (id, url) = (format!("cs_{number}"), "https://pay.example".to_owned());
                one.order_opened(&order.name, Opened { id, url }, now)
            }
            Event::Closed(which) => {
                let Some((_, order)) = self.order(*which) else { return Ok(()) };
                one.order_closed(&order.name, now)
            }
            Event::Refunded(which) => {
                let Some((_, order)) = self.order(*which) else { return Ok(()) };
                one.order_refunded(&order.name, now)
            }
            Event::NotRefunded(which) => {
                let Some((_, order)) = self.order(*which) else { return Ok(()) };
                one.order_not_refunded(&order.name, now)
            }
            Event::Heard(which, said) => {
                self.hear(*which, said, now);
                return Ok(());
            }
            Event::Sweep => one.look_at_orders(now).0,
            Event::Decline => one.decline(now)?,
            Event::Cancel => one.cancel(now)?,
            Event::Revoke(refund) => one.revoke(OperatorId::new("ops"), "wrong".to_owned(), *refund, now)?,
            Event::Claim => {
                let digest = one.terms().operation.digest;
                let attempt = sidegate::domain::Attempt::named(&format!("{now}"));
                match one.claim(&person(), digest, attempt, now, &SPANS)? {
                    sidegate::domain::Claim::First(after) => {
                        self.claims += 1;
                        after
                    }
                    sidegate::domain::Claim::Replay(after) => after,
                }
            }
        };
        Ok(())
    }

    fn hear(&mut self, which: usize, said: &Said, now: Timestamp) {
        let Some((number, order)) = self.order(which) else { return };
        let id = if said.same_id { format!("cs_{number}") } else { "cs_other".to_owned() };
        let name = order.name.clone();
        let statement = Statement {
            name: said.named.then(|| name.clone()),
            status: match said.status {
                Word::Open => Status::Open,
                Word::Approved => Status::Approved,
                Word::Processing => Status::Processing,
                Word::Paid => Status::Paid(format!("pi_{number}")),
                Word::Closed => Status::Closed,
                Word::Refunded => Status::Refunded,
            },
            money: Some(if said.exact { asked() } else { Money { amount: 1, ..asked() } }),
            livemode: said.livemode,
        };
        let before = order.payment().is_some();
        let heard = self.one.clone().heard(&name, &id, &statement, true, now, &SPANS);
        assert!(heard.changed || heard.elicitation == self.one, "what changes nothing says so");
        assert!(!heard.changed || heard.elicitation != self.one, "what says that it changes does");
        if let Some(receipt) = heard.receipt {
            assert!(
                said.named && said.exact && said.livemode != Some(false),
                "nothing else is an outcome: {said:?}"
            );
            assert_eq!((receipt.money, receipt.id.as_str()), (asked(), format!("pi_{number}").as_str()));
            self.receipts += 1;
        }
        self.one = heard.elicitation;
        if !before && self.one.orders()[number].payment().is_some() {
            assert!(
                matches!(said.status, Word::Paid),
                "money comes only by what the processor says: {said:?}"
            );
            self.money_in.insert(number);
        }
    }
}

fn person() -> Subject {
    subject("user-1")
}

/// What holds at every moment.
fn check(life: &Life, before: &Elicitation, event: &Event) -> Result<(), TestCaseError> {
    let one = &life.one;
    let (was, is) = (before.state().name(), one.state().name());
    prop_assert!(!was.is_terminal() || was == is, "{was} became {is} by {event:?}");
    prop_assert!(was.is_live() || !is.is_live(), "{was} became {is} by {event:?}");
    prop_assert!(life.receipts <= 1, "two outcomes");
    prop_assert!(life.claims <= 1, "claimed twice");
    prop_assert_eq!(
        one.state().name() == StateName::Completed,
        one.is_paid() && life.claims == 0 && !is.is_terminal()
    );
    prop_assert!(one.orders().len() <= 20);
    prop_assert!(
        one.orders().iter().filter(|order| order.is_payable()).count() <= 1,
        "two orders can be paid"
    );
    prop_assert!(
        one.orders().len() < 2
            || one.orders()[..one.orders().len() - 1].iter().all(|order| !order.is_payable())
    );

    // Money in is money accounted for: the outcome, what goes back, what waits.
    let accounted = one.orders().iter().filter(|order| order.payment().is_some()).count();
    prop_assert_eq!(life.money_in.len(), accounted, "after {:?}", event);
    let outcomes = one.orders().iter().filter(|order| matches!(order.stage, Stage::Paid(_))).count();
    prop_assert!(outcomes <= 1, "two orders count as paid");
    prop_assert_eq!(outcomes == 1, matches!(is, StateName::Completed | StateName::Claimed), "{}", is);

    // Nothing that still moves is forgotten: somebody will look at it.
    for order in one.orders() {
        let moves = order.is_payable() || matches!(order.stage, Stage::Refunding(..));
        prop_assert_eq!(order.look_at().is_some(), moves, "{:?}", order);
    }
    for (old, new) in before.orders().iter().zip(one.orders()) {
        prop_assert_eq!(&old.name, &new.name);
        if old.payment().is_some() {
            prop_assert!(new.payment().is_some(), "money was forgotten: {:?} by {:?}", old.stage, event);
            prop_assert_eq!(old.id(), new.id());
        }
        if matches!(old.stage, Stage::Refunded(..) | Stage::Held(..)) {
            prop_assert_eq!(&old.stage, &new.stage, "by {:?}", event);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r22_no_money_is_lost_or_counted_twice(events in events(), hold in any::<bool>()) {
        let late = if hold { Late::Hold } else { Late::Refund };
        let mut one = Elicitation::issue(payment());
        let _ = one.take_happened();
        let mut life = Life { one, late, receipts: 0, claims: 0, money_in: BTreeSet::new() };
        let mut now = START;
        for (pause, event) in &events {
            now = now + *pause;
            let before = life.one.clone();
            life.one = life.one.clone().settle(now);
            let settled = life.one.clone();
            check(&life, &before, &Event::Sweep)?;
            if life.take(event, now).is_err() {
                prop_assert_eq!(&life.one, &settled, "what was refused changed something: {:?}", event);
            }
            check(&life, &settled, event)?;
            let happened = life.one.take_happened();
            let (was, is) = (before.state().name(), life.one.state().name());
            prop_assert!(was == is || happened.iter().any(|one| one.to == is), "{was} became {is} unrecorded");
            let paid = |one: &Elicitation| one.orders().iter().filter(|order| order.payment().is_some()).count();
            prop_assert!(paid(&before) == paid(&life.one) || !happened.is_empty(), "money came unrecorded");
        }
    }
}
