//! What is asked of payment processors about an order, and what follows from their answers: one function,
//! [`Gate::look_at_order`]. A browser that comes back, a webhook and the sweep are reasons to call it, and no more.
//!
//! All of it can be done twice, at once, by several instances, and be broken off at any point: what goes to a processor is
//! stored before and has a key, and what comes back is put on record by a step.

use std::time::Duration;

use super::step::{Change, Decision, Needs};
use super::{Error, Gate};
use crate::domain::order::{Order, Stage, Statement, Status};
use crate::domain::{Actor, Elicitation, ElicitationId, Outcome, Request, Terms};
use crate::upstream::payment::{Closing, Failure, Fault, NewOrder, Payment};

/// An order, by its elicitation and its name.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub id: ElicitationId,
    pub name: &'a str,
}

/// What our names for orders begin with: others may use the same account.
pub(super) const OURS: &str = "sg-";
/// How often one look asks the processor, if each answer leads to another question.
const QUESTIONS: usize = 6;
/// How long after the end of an elicitation its money may still be being taken: longer than a call lasts.
const SETTLING: Duration = Duration::from_mins(1);

impl Gate {
    /// Looks at orders that the sweep found due.
    pub(super) async fn look_at_orders(&self, id: ElicitationId, names: &[String]) {
        for name in names {
            match self.look_at_order(Place { id, name }).await {
                Ok(Ok(())) | Err(Error::NotFound) => {}
                Ok(Err(failure)) => {
                    tracing::warn!(%failure, "an order could not be looked at; it will be tried again");
                }
                Err(error) => {
                    tracing::warn!(%error, "an order could not be looked at; it will be tried again");
                }
            }
        }
    }

    /// Asks the processor how an order stands, and does what follows.
    ///
    /// # Errors
    /// [`Error`] of the store; within, why the processor does not do its part.
    pub(super) async fn look_at_order(&self, place: Place<'_>) -> Result<Result<(), Failure>, Error> {
        for _ in 0..QUESTIONS {
            let (elicitation, _) = self.linked(place.id).await?;
            let Request::Payment(asked) = &elicitation.terms().request else { return Ok(Ok(())) };
            let Some(order) = elicitation.order_named(place.name) else { return Ok(Ok(())) };
            let Some(payment) = self.payments.get(&asked.provider) else {
                tracing::error!(
                    processor = asked.provider,
                    "an order is open at a processor that is not configured"
                );
                return Ok(Err(Failure::Passing(Fault::Configuration)));
            };
            if order.is_payable() && order.is_hopeless(self.now()) {
                tracing::error!(
                    processor = asked.provider,
                    "an order is neither paid nor closed after a month; nobody waits for it any more"
                );
                self.on_record(place, |elicitation, now| elicitation.order_closed(place.name, now)).await?;
                return Ok(Ok(()));
            }
            let processor = &payment.processor;
            let done = match &order.stage {
                Stage::Closed | Stage::Paid(_) | Stage::Refunded(..) | Stage::Held(..) => return Ok(Ok(())),
                Stage::Opening => match self.open_order(place, payment, elicitation.terms(), order).await? {
                    // Now that its name there is known.
                    Ok(()) => continue,
                    Err(Failure::Refused(_) | Failure::Spent) => {
                        self.give_up_opening(place).await?;
                        Ok(())
                    }
                    Err(failure) => Err(failure),
                },
                Stage::Open { id, .. } | Stage::Processing { id } => match processor.fetch(id).await {
                    Ok(said) => match self.follow(place, payment, id, &said).await? {
                        Ok(true) => continue,
                        Ok(false) => Ok(()),
                        Err(failure) => Err(failure),
                    },
                    Err(Failure::Unknown) if self.is_gone(payment, order.closes_at) => {
                        self.on_record(place, |elicitation, now| elicitation.order_closed(place.name, now))
                            .await?;
                        Ok(())
                    }
                    Err(failure) => Err(failure),
                },
                Stage::Refunding(paid, _) => {
                    match processor.refund(paid, &format!("{}-refund", place.name)).await {
                        Ok(()) => {
                            self.on_record(place, |elicitation, now| {
                                elicitation.order_refunded(place.name, now)
                            })
                            .await?;
                            Ok(())
                        }
                        Err(failure) if order.is_hopeless(self.now()) => {
                            tracing::error!(%failure, "a payment could not be paid back; an operator must see to it");
                            self.on_record(place, |elicitation, now| {
                                elicitation.order_not_refunded(place.name, now)
                            })
                            .await?;
                            Ok(())
                        }
                        Err(failure) => Err(failure),
                    }
                }
            };
            return Ok(done);
        }
        Ok(Ok(()))
    }

    /// Does what follows from how an order stands. Whether the processor is to be asked again.
    ///
    /// # Errors
    /// As [`Gate::look_at_order`].
    pub(super) async fn follow(
        &self,
        place: Place<'_>,
        payment: &Payment,
        id: &str,
        said: &Statement,
    ) -> Result<Result<bool, Failure>, Error> {
        let (elicitation, _) = self.linked(place.id).await?;
        let live = elicitation.state().name().is_live();
        let Some(order) = elicitation.order_named(place.name) else { return Ok(Ok(false)) };
        if order.id().is_some_and(|known| known != id) {
            tracing::warn!("an order at a processor bears the name of another; it is passed over");
            return Ok(Ok(false));
        }
        match said.status {
            // Before anything is taken it must be what was asked for.
            Status::Approved if live && is_as_asked(&elicitation, place, said, payment) => {
                match payment.processor.settle(id, &format!("{}-settle", place.name)).await {
                    Ok(()) => return Ok(Ok(true)),
                    // The person may choose another way to pay.
                    Err(Failure::Refused(_)) => return Ok(Ok(false)),
                    Err(failure) => return Ok(Err(failure)),
                }
            }
            // Whoever saw it live a moment ago may be taking the money: it is looked at again when that is over.
            Status::Approved
                if !live
                    && order.is_payable()
                    && elicitation.state().since().is_some_and(|ended| self.now() < ended + SETTLING) =>
            {
                return Ok(Ok(false));
            }
            Status::Open | Status::Approved if !live && order.is_payable() => {
                match payment.processor.close(id).await {
                    Ok(Closing::Closed) => {
                        self.on_record(place, |elicitation, now| elicitation.order_closed(place.name, now))
                            .await?;
                        return Ok(Ok(false));
                    }
                    Ok(Closing::LookAgain) => return Ok(Ok(true)),
                    Err(failure) => return Ok(Err(failure)),
                }
            }
            // Nothing is taken that is not what was asked for.
            Status::Approved if live => {
                tracing::error!("what a person approved is not what was asked for; it is not taken");
                self.on_record(place, |elicitation, now| elicitation.order_closed(place.name, now)).await?;
                return Ok(Ok(false));
            }
            _ => {}
        }
        let livemode = payment.settings.livemode;
        let wrong = self
            .step(place.id, Actor::Processor, Needs::Record, |found| {
                let heard = found.elicitation.heard(place.name, id, said, livemode, found.now, &self.spans);
                if !heard.changed {
                    return Ok(Decision::Stay(false));
                }
                let wrong = heard.elicitation.is_unclear();
                let outcome = heard.receipt.map(|receipt| Outcome::Payment(Box::new(receipt)));
                let change = Change { outcome, ..Change::from(heard.elicitation) };
                Ok(Decision::change(change, wrong))
            })
            .await?;
        if wrong {
            tracing::error!(
                "something was paid that is not what was asked for: amount, currency, mode or name differ"
            );
        }
        Ok(Ok(false))
    }

    /// Opens an order at its processor, and puts that on record.
    ///
    /// # Errors
    /// As [`Gate::look_at_order`].
    pub(super) async fn open_order(
        &self,
        place: Place<'_>,
        payment: &Payment,
        terms: &Terms,
        order: &Order,
    ) -> Result<Result<(), Failure>, Error> {
        let Request::Payment(request) = &terms.request else { return Err(Error::NotFound) };
        // As it was when the order was begun: another instance, or a later one, repeats the call to the letter.
        let from = &order.from;
        let new = NewOrder {
            name: place.name,
            request,
            closes_at: order.closes_at,
            return_url: format!("{from}/payment/{}/return", place.id),
            cancel_url: format!("{from}/e/{}/payment/not-paid", place.id),
            webhook_url: webhook_url(from, &request.provider),
        };
        match payment.processor.open(&new).await {
            Ok(opened) => {
                self.on_record(place, |elicitation, now| {
                    elicitation.order_opened(place.name, opened.clone(), now)
                })
                .await?;
                Ok(Ok(()))
            }
            Err(failure) => {
                tracing::warn!(processor = request.provider, %failure, "an order could not be opened");
                Ok(Err(failure))
            }
        }
    }

    /// An order will not be opened: nobody was sent there, and nobody will be.
    pub(super) async fn give_up_opening(&self, place: Place<'_>) -> Result<(), Error> {
        self.on_record(place, |elicitation, now| {
            let opening = |order: &Order| order.stage == Stage::Opening;
            if !elicitation.order_named(place.name).is_some_and(opening) {
                return elicitation;
            }
            elicitation.order_closed(place.name, now)
        })
        .await
    }

    /// Puts on record what happened to an order.
    async fn on_record(
        &self,
        place: Place<'_>,
        act: impl Fn(Elicitation, crate::domain::Timestamp) -> Elicitation,
    ) -> Result<(), Error> {
        self.step(place.id, Actor::Processor, Needs::Record, |found| {
            Ok(Decision::change(act(found.elicitation, found.now), ()))
        })
        .await
    }

    /// Whether an order that its processor does not know is one that it has forgotten.
    fn is_gone(&self, payment: &Payment, closes_at: crate::domain::Timestamp) -> bool {
        closes_at <= self.now() || payment.processor.manual().is_some()
    }
}

/// Where the webhooks of a processor go: as it is to be registered there.
#[must_use]
pub fn webhook_url(public_url: &str, processor: &str) -> String {
    format!("{public_url}/webhooks/{processor}")
}

fn is_as_asked(elicitation: &Elicitation, place: Place<'_>, said: &Statement, payment: &Payment) -> bool {
    let Request::Payment(asked) = &elicitation.terms().request else { return false };
    said.name.as_deref() == Some(place.name)
        && said.money == Some(asked.money)
        && said.livemode.is_none_or(|live| live == payment.settings.livemode)
}
