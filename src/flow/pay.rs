//! The person presses Pay: the order is stored, then opened at the processor, and the browser leaves. Later it comes back.
//!
//! That it came back says nothing: the processor is asked (`orders`).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::departure::Errand;
use super::open::Guest;
use super::orders::{OURS, Place};
use super::page::Page;
use super::step::{Change, Decision, Needs};
use super::{Error, Gate};
use crate::domain::order::{Order, Stage};
use crate::domain::{Elicitation, Refusal, Request, StateName, Theirs, Timestamp};
use crate::identity::Browser;
use crate::upstream::payment::{Failure, Payment};
use crate::vault::Lookup;

/// What comes of pressing Pay.
pub enum Paying {
    /// The browser is to leave.
    Leaves {
        /// The name of the departure.
        departure: String,
        /// The value of [`super::departure::BROWSER_COOKIE`].
        browser: String,
    },
    /// There is nothing to pay any more: its page says why.
    Done,
    /// It did not come to that.
    Not(NotPaid),
}

/// Why somebody who wanted to pay has not paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPaid {
    /// The processor does not do its part, and may the next time.
    Unavailable,
    /// The person came back, and the processor does not say whether they have paid.
    Unknown,
    /// The person came back without paying.
    Open,
    /// Something was paid that is not what was asked for.
    Unclear,
}

/// Whether an order leads anywhere.
enum Way {
    /// Here it can be paid.
    Open(String),
    /// It came to nothing, and another may be begun.
    Another,
    /// Nothing can be paid now.
    None(Paying),
}

/// How long a press of Pay waits for another press that does the same.
const PAUSES: [u64; 5] = [200, 400, 800, 1600, 3000];
/// How much longer than the elicitation its order can be paid at most: the processor closes it even if nobody tells it to.
const MARGIN: Duration = Duration::from_mins(1);

impl Gate {
    /// Begins an order, or goes on with the one that there is.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what is no payment, [`Error::Refused`] if the elicitation has ended, [`Error::Unavailable`].
    pub async fn pay(&self, guest: &Guest, browser: &Browser<'_>) -> Result<Paying, Error> {
        let Request::Payment(asked) = &guest.elicitation().terms().request else {
            return Err(Error::NotFound);
        };
        if is_paid(guest.elicitation()) {
            return Ok(Paying::Done);
        }
        let Some(payment) = self.payments.get(&asked.provider) else {
            tracing::error!(
                processor = asked.provider,
                "a payment is asked for at a processor that is not configured"
            );
            return Ok(Paying::Not(NotPaid::Unavailable));
        };
        // Once more if what was begun before has come to nothing meanwhile.
        for _ in 0..2 {
            let (order, first) = match self.begin_order(guest, payment, &asked.provider).await? {
                Ok(begun) => begun,
                Err(why) => return Ok(why),
            };
            let url = match self.way_to(guest, payment, order, first).await? {
                Way::Open(url) => url,
                Way::None(why) => return Ok(why),
                Way::Another => continue,
            };
            let departure = self.fresh_name();
            let errand = Errand::Pay { provider: asked.provider.clone() };
            let browser = self.depart(&departure, Page::Link(guest.id()), errand, url, browser).await?;
            return Ok(Paying::Leaves { departure, browser });
        }
        Ok(Paying::Not(NotPaid::Open))
    }

    /// Stores a new order, unless there is one that can be paid. The order, and whether it is the new one; else why there is
    /// none.
    async fn begin_order(
        &self,
        guest: &Guest,
        payment: &Payment,
        provider: &str,
    ) -> Result<Result<(Order, bool), Paying>, Error> {
        let fresh = self.new_order(guest.elicitation(), payment);
        let begun = self
            .step(guest.id(), guest.actor(), Needs::Record, |found| {
                let theirs = guest.take(found.elicitation)?;
                if is_paid(theirs.elicitation()) {
                    return Ok(Decision::Stay(None));
                }
                let name = &fresh.name;
                let ordered = theirs.order(fresh.clone(), found.now)?.into_inner();
                let order = ordered.payable().cloned();
                if order.as_ref().is_some_and(|order| order.name != *name) {
                    return Ok(Decision::Stay(order));
                }
                let orders = self.ring.tags(Lookup::Order(provider, name)).collect();
                Ok(Decision::change(Change { orders, ..Change::from(ordered) }, order))
            })
            .await;
        match begun {
            Ok(Some(order)) => {
                let first = order.name == fresh.name;
                Ok(Ok((order, first)))
            }
            Ok(None) => Ok(Err(Paying::Done)),
            Err(Error::Refused(Refusal::PaymentUnclear)) => Ok(Err(Paying::Not(NotPaid::Unclear))),
            Err(Error::Refused(refusal @ Refusal::TooManyOrders)) => {
                self.as_payer(guest, refusal.code(), Theirs::fail).await?;
                Ok(Err(Paying::Done))
            }
            Err(error) => Err(error),
        }
    }

    /// Where an order can be paid. `first`: whether nobody has tried to open it before.
    async fn way_to(
        &self,
        guest: &Guest,
        payment: &Payment,
        order: Order,
        first: bool,
    ) -> Result<Way, Error> {
        let place = Place { id: guest.id(), name: &order.name };
        let stage = if first {
            order.stage
        } else {
            match self.look_again(guest, place, order.stage).await? {
                Ok(stage) => stage,
                Err(way) => return Ok(way),
            }
        };
        Ok(match stage {
            Stage::Open { url, .. } => Way::Open(url),
            _ => match self.open_patiently(guest, place, payment, first).await? {
                Ok(url) => Way::Open(url),
                Err(why) => Way::None(why),
            },
        })
    }

    /// Looks at an order that was begun before: they may have paid it by now, and nobody has heard of it.
    async fn look_again(
        &self,
        guest: &Guest,
        place: Place<'_>,
        before: Stage,
    ) -> Result<Result<Stage, Way>, Error> {
        let looked = match before {
            // Whoever opens it finds out.
            Stage::Opening => return Ok(Ok(before)),
            _ => self.look_at_order(place).await?,
        };
        let (elicitation, _) = self.linked(guest.id()).await?;
        if !elicitation.state().name().is_live() || is_paid(&elicitation) {
            return Ok(Err(Way::None(Paying::Done)));
        }
        Ok(match elicitation.order_named(place.name).map(|order| order.stage.clone()) {
            _ if looked.is_err() => Err(Way::None(Paying::Not(NotPaid::Unknown))),
            Some(stage @ (Stage::Open { .. } | Stage::Opening)) => Ok(stage),
            _ if elicitation.is_unclear() => Err(Way::None(Paying::Not(NotPaid::Unclear))),
            _ => Err(Way::Another),
        })
    }

    /// Opens an order at its processor, or waits for whoever does. `first`: whether nobody has tried before.
    async fn open_patiently(
        &self,
        guest: &Guest,
        place: Place<'_>,
        payment: &Payment,
        first: bool,
    ) -> Result<Result<String, Paying>, Error> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let (elicitation, _) = self.linked(guest.id()).await?;
            let Some(order) = elicitation.order_named(place.name) else { break };
            if !elicitation.state().name().is_live() {
                return Ok(Err(Paying::Done));
            }
            if let Stage::Open { url, .. } = &order.stage {
                return Ok(Ok(url.clone()));
            }
            if order.stage != Stage::Opening {
                return Ok(Err(Paying::Done));
            }
            match self.open_order(place, payment, elicitation.terms(), order).await? {
                // Now its page is known, or it has ended meanwhile.
                Ok(()) => {}
                Err(Failure::Busy) => {
                    let Some(pause) = pauses.next() else { break };
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                // No try will do: it is the order itself.
                Err(Failure::Refused(fault)) if first => {
                    self.as_payer(guest, fault.code(), Theirs::fail).await?;
                    return Ok(Err(Paying::Done));
                }
                Err(Failure::Spent) => {
                    self.give_up_opening(place).await?;
                    break;
                }
                Err(_) => break,
            }
        }
        Ok(Err(Paying::Not(NotPaid::Unavailable)))
    }

    /// The browser is back from the processor, with the right person before it. Why they have not paid; nothing if there is
    /// something else to say.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what is no payment, [`Error::Unavailable`].
    pub async fn finish_payment(&self, guest: &Guest) -> Result<Option<NotPaid>, Error> {
        if !matches!(guest.elicitation().terms().request, Request::Payment(_)) {
            return Err(Error::NotFound);
        }
        let Some(order) = guest.elicitation().payable() else { return Ok(None) };
        let looked = self.look_at_order(Place { id: guest.id(), name: &order.name }).await?;
        let (elicitation, _) = self.linked(guest.id()).await?;
        let open = elicitation.state().name().is_live() && !elicitation.is_processing();
        Ok(match looked {
            _ if !open => None,
            Err(_) => Some(NotPaid::Unknown),
            Ok(()) if elicitation.is_unclear() => Some(NotPaid::Unclear),
            Ok(()) => Some(NotPaid::Open),
        })
    }

    /// A new order for an elicitation. It can be paid at least as long as the elicitation, if the processor allows that.
    fn new_order(&self, elicitation: &Elicitation, payment: &Payment) -> Order {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        let now = self.now();
        let (shortest, longest) = payment.processor.lives();
        let wanted = now.until(elicitation.expires_at()) + MARGIN;
        let closes_at = now + wanted.clamp(shortest, longest);
        let name = format!("{OURS}{}", URL_SAFE_NO_PAD.encode(bytes));
        Order::new(name, self.public_url.clone(), closes_at, payment.settings.late, now)
    }

    /// A step of the person that ends it.
    async fn as_payer(
        &self,
        guest: &Guest,
        reason: &str,
        act: impl Fn(Theirs, Timestamp) -> Result<Elicitation, Refusal>,
    ) -> Result<(), Error> {
        self.step(guest.id(), guest.actor(), Needs::Record, |found| {
            let ended = act(guest.take(found.elicitation)?, found.now)?;
            Ok(Decision::change(Change { reason: Some(reason.to_owned()), ..Change::from(ended) }, ()))
        })
        .await
    }
}

/// Whether there is nothing to pay any more: it is paid, or what was paid is on its way.
fn is_paid(elicitation: &Elicitation) -> bool {
    let done = matches!(elicitation.state().name(), StateName::Completed | StateName::Claimed);
    done || elicitation.is_processing()
}
