//! What is configured of a processor.

use secrecy::SecretString;
use url::Url;

use crate::domain::order::Late;

/// A processor, as it is configured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its id, which requests name.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Whom the person pays, if it is not simply the client.
    pub payee: Option<String>,
    /// Whether it moves money, and not only plays with it.
    pub livemode: bool,
    /// What becomes of a payment that came too late.
    pub late: Late,
    /// With whom, and in whose name.
    pub account: Account,
}

/// An account at a processor.
#[derive(Debug, Clone)]
pub enum Account {
    /// Stripe Checkout.
    Stripe(Stripe),
    /// `PayPal` Orders v2.
    PayPal(PayPal),
    /// `PayU`'s REST API 2.1.
    PayU(PayU),
    /// A page of ours, for development.
    Manual,
}

/// An account at Stripe.
#[derive(Debug, Clone)]
pub struct Stripe {
    /// Where the API is.
    pub api_base: Url,
    /// A secret or restricted key.
    pub secret_key: SecretString,
    /// The secrets of the webhook endpoint: several while one is replaced.
    pub webhook_secrets: Vec<SecretString>,
}

/// An account at `PayPal`.
#[derive(Debug, Clone)]
pub struct PayPal {
    /// Where the API is.
    pub api_base: Url,
    /// The application.
    pub client_id: String,
    /// Its secret.
    pub client_secret: SecretString,
    /// The webhook that is registered there.
    pub webhook_id: String,
}

/// A point of sale at `PayU`.
#[derive(Debug, Clone)]
pub struct PayU {
    /// Where the API is.
    pub api_base: Url,
    /// The point of sale.
    pub pos_id: String,
    /// The OAuth client.
    pub client_id: String,
    /// Its secret.
    pub client_secret: SecretString,
    /// The second key, with which notifications are signed.
    pub second_key: SecretString,
}
