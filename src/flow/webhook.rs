//! A payment processor calls: something may have happened to an order. What, it is asked.

pub use super::orders::webhook_url;
use super::orders::{OURS, Place};
use super::{Error, Gate};
use crate::domain::order::Status;
use crate::telemetry;
use crate::upstream::payment::{Failure, Unverified, Webhook};
use crate::vault::Lookup;

/// What came of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It is dealt with, or needs nothing.
    Done,
    /// It is not believed.
    Unverified(Unverified),
    /// It must come again.
    Later,
}

impl Gate {
    /// Deals with a webhook of the processor of this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such processor, [`Error::Unavailable`].
    pub async fn hear_webhook(&self, processor: &str, webhook: &Webhook<'_>) -> Result<Heard, Error> {
        let heard = self.hear(processor, webhook).await;
        let outcome = match &heard {
            Ok(Heard::Done) => "done",
            Ok(Heard::Unverified(why)) => why.code(),
            Ok(Heard::Later) | Err(Error::Unavailable(_)) => "later",
            // Of no processor of ours: what the path said is not repeated.
            Err(_) => return heard,
        };
        telemetry::webhook(processor, outcome);
        heard
    }

    async fn hear(&self, processor: &str, webhook: &Webhook<'_>) -> Result<Heard, Error> {
        let payment = self.payments.get(processor).ok_or(Error::NotFound)?;
        let notices = match payment.processor.verify(webhook, self.now()).await {
            Ok(notices) => notices,
            Err(why) => {
                tracing::warn!(processor, reason = why.code(), "a webhook was refused");
                return Ok(Heard::Unverified(why));
            }
        };
        let mut heard = Heard::Done;
        for notice in notices {
            if notice.livemode.is_some_and(|live| live != payment.settings.livemode) {
                tracing::warn!(
                    processor,
                    "a webhook is about the other mode, live or test, and was passed over"
                );
                continue;
            }
            let said = match payment.processor.fetch(&notice.id).await {
                Ok(said) => said,
                Err(Failure::Unknown | Failure::Refused(_)) => continue,
                Err(failure) => {
                    tracing::warn!(processor, %failure, "a webhook could not be followed; it is to come again");
                    heard = Heard::Later;
                    continue;
                }
            };
            // An order of somebody else who uses the same account.
            let Some(name) = said.name.as_ref().filter(|name| name.starts_with(OURS)) else { continue };
            let mut found = None;
            for tag in self.ring.tags(Lookup::Order(processor, name)) {
                found = found.or(self.store.find(tag).await?.map(|stored| stored.id));
            }
            let Some(id) = found else {
                if !matches!(said.status, Status::Closed | Status::Refunded) {
                    tracing::warn!(
                        processor,
                        "a webhook is about an order that is not known; it is to come again"
                    );
                    heard = Heard::Later;
                }
                continue;
            };
            let place = Place { id, name };
            let again = match self.follow(place, payment, &notice.id, &said).await {
                Ok(Ok(again)) => again,
                Ok(Err(_)) => {
                    heard = Heard::Later;
                    continue;
                }
                Err(Error::NotFound) => continue,
                Err(error) => return Err(error),
            };
            if again && self.look_at_order(place).await?.is_err() {
                heard = Heard::Later;
            }
        }
        Ok(heard)
    }
}
