//! Kind `payment`: what is to be paid, and the receipt that comes of it.

use serde::{Deserialize, Serialize};

use super::money::Money;
use super::text::{Shape, plain};
use super::{Invalid, Timestamp};

/// What the person is asked to pay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentRequest {
    /// The processor, by its id in the configuration.
    pub provider: String,
    /// How much.
    pub money: Money,
    /// What for, as the person reads it here and at the processor.
    pub description: String,
    /// The client's own name for it, by which the payment is found again in the processor's books.
    pub reference: String,
}

/// As long as every processor takes it.
const DESCRIPTION: Shape = Shape { longest: 120, lines: false };
const REFERENCE: Shape = Shape { longest: 100, lines: false };

impl PaymentRequest {
    /// Checks what a caller asks for. Whether there is such a processor, and whether it takes that amount, is not known here.
    ///
    /// # Errors
    /// [`Invalid`] at `payment.…`.
    pub fn new(
        provider: String,
        amount: u64,
        currency: &str,
        description: &str,
        reference: &str,
    ) -> Result<Self, Invalid> {
        let currency = currency.parse().map_err(|_| {
            Invalid::new("payment.currency", "must be a currency of ISO 4217, three letters such as `usd`")
        })?;
        if amount == 0 {
            return Err(Invalid::new("payment.amount", "must be at least 1, in the currency's minor unit"));
        }
        let reference = plain("payment.reference", reference, REFERENCE)?;
        if !reference.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) {
            return Err(Invalid::new("payment.reference", "must have ASCII characters alone"));
        }
        let description = plain("payment.description", description, DESCRIPTION)?;
        Ok(Self { provider, money: Money { amount, currency }, description, reference })
    }
}

/// What was paid: the outcome of an elicitation of this kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The processor, by its id in the configuration.
    pub provider: String,
    /// The client's own name for it.
    pub reference: String,
    /// The processor's name for the payment.
    pub id: String,
    /// How much.
    pub money: Money,
    /// When Sidegate learned that it was paid.
    pub paid_at: Timestamp,
    /// Whether it was money, and not the processor's test mode.
    pub livemode: bool,
}

impl Receipt {
    /// The credential as the API releases it.
    #[must_use]
    pub const fn credential(&self) -> Credential<'_> {
        Credential(self)
    }
}

/// `{"payment": {provider, reference, id, amount, currency, paidAt, livemode}}`, the currency in small letters.
pub struct Credential<'a>(&'a Receipt);

impl Serialize for Credential<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Members<'a> {
            payment: Payment<'a>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Payment<'a> {
            provider: &'a str,
            reference: &'a str,
            id: &'a str,
            amount: u64,
            currency: String,
            paid_at: String,
            livemode: bool,
        }
        let Receipt { provider, reference, id, money, paid_at, livemode } = self.0;
        let payment = Payment {
            provider,
            reference,
            id,
            amount: money.amount,
            currency: money.currency.code().to_ascii_lowercase(),
            paid_at: paid_at.to_string(),
            livemode: *livemode,
        };
        Members { payment }.serialize(serializer)
    }
}
