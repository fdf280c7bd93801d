//! How an elicitation and its orders move together.
//!
//! Only what the processor says when it is asked moves an order on: [`Elicitation::heard`]. A return page, a webhook and the
//! sweep are mere reasons to ask, so that late, doubled, reordered and forged ones change nothing.

use super::{Elicitation, Spans, Theirs};
use crate::domain::order::{Late, Opened, Order, Paid, Stage, Statement, Status, Why};
use crate::domain::payment::Receipt;
use crate::domain::{Refusal, Request, State, Timestamp, What};

/// What became of an elicitation that heard of its order.
#[derive(Debug)]
pub struct Heard {
    /// The elicitation.
    pub elicitation: Elicitation,
    /// What was paid, if it is the outcome from now on.
    pub receipt: Option<Receipt>,
    /// Whether anything has changed.
    pub changed: bool,
}

/// How many orders one elicitation may have: each came to nothing before the next was begun.
const MOST_ORDERS: usize = 20;

impl Theirs {
    /// The person wants to pay. If an order can be paid already, it stays the one; else this one is begun.
    ///
    /// # Errors
    /// [`Refusal::Ended`] unless it is live, [`Refusal::PaymentUnclear`] if something was paid that is not what was asked
    /// for, [`Refusal::TooManyOrders`].
    pub fn order(self, order: Order, now: Timestamp) -> Result<Self, Refusal> {
        let mut started = self.start(now)?;
        if started.0.is_unclear() {
            return Err(Refusal::PaymentUnclear);
        }
        if started.0.payable().is_none() {
            if started.0.orders.len() >= MOST_ORDERS {
                return Err(Refusal::TooManyOrders);
            }
            let mut order = order;
            order.enter(Stage::Opening, now);
            started.0.orders.push(order);
            started.0 = started.0.noted(What::Ordered);
        }
        Ok(started)
    }
}

impl Elicitation {
    /// The orders, oldest first.
    #[must_use]
    pub fn orders(&self) -> &[Order] {
        &self.orders
    }

    /// The order that the person can pay.
    #[must_use]
    pub fn payable(&self) -> Option<&Order> {
        self.orders.last().filter(|order| order.is_payable())
    }

    /// The order of this name.
    #[must_use]
    pub fn order_named(&self, name: &str) -> Option<&Order> {
        self.orders.iter().find(|order| order.name == name)
    }

    /// Whether what the person paid is on its way.
    #[must_use]
    pub const fn is_processing(&self) -> bool {
        matches!(self.state, State::Processing { .. })
    }

    /// Whether something was paid that is not what was asked for.
    #[must_use]
    pub fn is_unclear(&self) -> bool {
        self.spoiled().any(|why| why == Why::Mismatch)
    }

    /// Why payments are no outcome, of all for which that is so.
    pub fn spoiled(&self) -> impl Iterator<Item = Why> {
        self.orders.iter().filter_map(|order| match order.stage {
            Stage::Refunding(_, why) | Stage::Refunded(_, why) | Stage::Held(_, why) => Some(why),
            _ => None,
        })
    }

    /// When an order must be looked at, if ever.
    #[must_use]
    pub fn orders_due(&self) -> Option<Timestamp> {
        self.orders.iter().filter_map(Order::look_at).min()
    }

    /// Notes that the orders which are due are looked at now, and names them.
    #[must_use]
    pub fn look_at_orders(mut self, now: Timestamp) -> (Self, Vec<String>) {
        let mut names = Vec::new();
        for order in &mut self.orders {
            if order.look_at().is_some_and(|at| at <= now) {
                order.looked(now);
                names.push(order.name.clone());
            }
        }
        (self, names)
    }

    /// The processor has opened an order.
    #[must_use]
    pub fn order_opened(mut self, name: &str, Opened { id, url }: Opened, now: Timestamp) -> Self {
        let ended = !self.state.name().is_live();
        if let Some(order) = self.orders.iter_mut().find(|order| order.name == name)
            && order.stage == Stage::Opening
        {
            order.enter(Stage::Open { id, url }, now);
            if ended {
                order.look_at = Some(now);
            }
        }
        self
    }

    /// An order can be paid by nobody any more: the processor refused or closed it, or nobody was sent there.
    #[must_use]
    pub fn order_closed(mut self, name: &str, now: Timestamp) -> Self {
        let Some(order) = self.orders.iter_mut().find(|order| order.name == name && order.is_payable())
        else {
            return self;
        };
        order.enter(Stage::Closed, now);
        match self.state {
            State::InProgress { .. } | State::Processing { .. } => self.moved(What::Retried, State::Pending),
            _ => self,
        }
    }

    /// What was paid has been paid back.
    #[must_use]
    pub fn order_refunded(mut self, name: &str, now: Timestamp) -> Self {
        let order = self.orders.iter_mut().find(|order| order.name == name);
        if let Some(order) = order
            && let Stage::Refunding(paid, why) = &order.stage
        {
            order.enter(Stage::Refunded(paid.clone(), *why), now);
            return self.noted(What::Refunded);
        }
        self
    }

    /// It cannot be paid back by us: an operator must see to it.
    #[must_use]
    pub fn order_not_refunded(mut self, name: &str, now: Timestamp) -> Self {
        let order = self.orders.iter_mut().find(|order| order.name == name);
        if let Some(order) = order
            && let Stage::Refunding(paid, why) = &order.stage
        {
            order.enter(Stage::Held(paid.clone(), *why), now);
            return self.noted(What::NotRefunded);
        }
        self
    }

    /// The processor has said how an order stands. `livemode`: which mode it must be in.
    #[must_use]
    pub fn heard(
        mut self,
        name: &str,
        id: &str,
        said: &Statement,
        livemode: bool,
        now: Timestamp,
        spans: &Spans,
    ) -> Heard {
        let same = |elicitation| Heard { elicitation, receipt: None, changed: false };
        let changed = |elicitation| Heard { elicitation, receipt: None, changed: true };
        let Request::Payment(asked) = &self.terms.request else { return same(self) };
        let asked = asked.clone();
        let live = self.state.name().is_live();
        let Some(order) = self.orders.iter_mut().find(|order| order.name == name) else { return same(self) };
        let ours = said.name.as_deref() == Some(name);
        match order.id() {
            Some(known) if known != id => return same(self),
            None if !ours => return same(self),
            // What we opened, and bears another name when it is paid, is not what was asked for.
            Some(_) if !ours && !matches!(said.status, Status::Paid(_)) => return same(self),
            _ => {}
        }
        // What was taken for closed may have been paid all the same; what was paid stays so.
        let open = order.is_payable() || order.stage == Stage::Closed;
        let id = id.to_owned();
        match &said.status {
            Status::Refunded => {
                if let Stage::Refunding(..) = order.stage {
                    return changed(self.order_refunded(name, now));
                }
                if !order.is_payable() {
                    return same(self);
                }
                changed(self.order_closed(name, now))
            }
            Status::Closed if order.is_payable() => changed(self.order_closed(name, now)),
            Status::Processing if order.is_payable() => {
                if matches!(order.stage, Stage::Processing { .. }) {
                    return same(self);
                }
                order.enter(Stage::Processing { id }, now);
                changed(if live {
                    self.moved(What::Processing, State::Processing { since: now })
                } else {
                    self
                })
            }
            Status::Paid(payment) if open => {
                let paid = Paid { id, payment: payment.clone() };
                let matches = ours
                    && said.money == Some(asked.money)
                    && said.livemode.is_none_or(|live| live == livemode);
                if !matches {
                    spoil(order, paid, Why::Mismatch, now);
                    return changed(match self.state {
                        State::Processing { since } => {
                            self.moved(What::PaidWrong, State::InProgress { started_at: since })
                        }
                        _ => self.noted(What::PaidWrong),
                    });
                }
                if !live {
                    spoil(order, paid, Why::Late, now);
                    return changed(self.noted(What::PaidLate));
                }
                order.enter(Stage::Paid(paid), now);
                let receipt = Receipt {
                    provider: asked.provider,
                    reference: asked.reference,
                    id: payment.clone(),
                    money: asked.money,
                    paid_at: now,
                    livemode,
                };
                let state = State::Completed { at: now, claim_by: now + spans.claim_by };
                let elicitation = self.moved(What::Completed, state);
                Heard { elicitation, receipt: Some(receipt), changed: true }
            }
            Status::Open | Status::Approved | Status::Processing | Status::Paid(_) | Status::Closed => {
                same(self)
            }
        }
    }

    /// An operator wants what was paid to be paid back, whatever becomes of late payments otherwise.
    pub(super) fn refund_if_paid(&mut self) {
        for order in &mut self.orders {
            if matches!(order.stage, Stage::Paid(_)) {
                order.late = Late::Refund;
            }
        }
    }

    /// Whether it was paid, and that is its outcome.
    #[must_use]
    pub fn is_paid(&self) -> bool {
        self.orders.iter().any(|order| matches!(order.stage, Stage::Paid(_)))
    }

    /// What follows for the orders from a change of state.
    pub(super) fn orders_follow(&mut self, before: &State) {
        let (state, at) = (self.state.name(), self.state.since());
        if state.is_live() {
            return;
        }
        let unclaimed =
            matches!(before, State::Completed { .. }) && !matches!(self.state, State::Claimed { .. });
        for order in &mut self.orders {
            if order.is_payable() {
                order.tries = 0;
                order.look_at = Some(at.unwrap_or(order.begun_at));
            }
            if unclaimed && let Stage::Paid(paid) = &order.stage {
                let paid = paid.clone();
                spoil(order, paid, Why::Unclaimed, at.unwrap_or(self.terms.created_at));
            }
        }
    }
}

/// Nothing will be done for what was paid.
fn spoil(order: &mut Order, paid: Paid, why: Why, now: Timestamp) {
    let stage = match order.late {
        Late::Refund => Stage::Refunding(paid, why),
        Late::Hold => Stage::Held(paid, why),
    };
    order.enter(stage, now);
}
