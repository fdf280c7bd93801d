//! A payment processor, in a process of its own (`tests/processors`): its API, its hosted page, its webhooks. It also plays the
//! person at that page.

use serde_json::{Value, json};

use super::node::Node;

/// The processor. Ends when dropped.
pub(crate) struct Till(Node);

pub(crate) const STRIPE_KEY: &str = "sk_test_a_key_of_the_tests_alone";
pub(crate) const WEBHOOK_SECRET: &str = "whsec_a_secret_of_the_tests_alone";
pub(crate) const PAYPAL_SECRET: &str = "a client secret of the tests alone";
pub(crate) const WEBHOOK_ID: &str = "WH-TESTS";

impl Till {
    /// Takes a port; serves once it is set up.
    pub(crate) async fn stripe() -> Self {
        Self(Node::start("processors", "stripe.mjs").await)
    }

    /// The same, as `PayPal`.
    pub(crate) async fn paypal() -> Self {
        Self(Node::start("processors", "paypal.mjs").await)
    }

    pub(crate) fn url(&self) -> &str {
        self.0.url()
    }

    /// Serves; its webhooks go to this URL.
    pub(crate) async fn serve_stripe(&mut self, webhooks: &str) {
        let webhook = json!({"url": webhooks, "secrets": [WEBHOOK_SECRET]});
        let settings = json!({"secret_key": STRIPE_KEY, "livemode": false, "webhook": webhook});
        assert_eq!(self.ask(&settings).await, json!({"ready": true}));
    }

    /// The same, as `PayPal`.
    pub(crate) async fn serve_paypal(&mut self, webhooks: &str) {
        let webhook = json!({"url": webhooks, "id": WEBHOOK_ID});
        let settings = json!({"client_id": "sidegate", "client_secret": PAYPAL_SECRET, "webhook": webhook});
        assert_eq!(self.ask(&settings).await, json!({"ready": true}));
    }

    /// Asks: what comes back.
    pub(crate) async fn ask(&mut self, command: &Value) -> Value {
        let answer: Value = serde_json::from_str(&self.0.ask(command).await).unwrap();
        assert!(answer.get("error").is_none(), "{command}: {answer}");
        answer
    }

    /// Somebody pays an order at the hosted page: `now`, `later` or `fail`.
    pub(crate) async fn pay(&mut self, order: &str, how: &str) {
        self.ask(&json!({"pay": order, "how": how})).await;
    }

    /// What is in flight ends: `succeeded` or `failed`.
    pub(crate) async fn finish(&mut self, order: &str, how: &str) {
        self.ask(&json!({"finish": order, "as": how})).await;
    }

    /// Where webhooks go from now on: `send`, `hold` or `off`.
    pub(crate) async fn webhooks(&mut self, mode: &str) {
        self.ask(&json!({"webhooks": {"mode": mode}})).await;
    }

    /// What goes wrong from now on, by method and path.
    pub(crate) async fn faults(&mut self, faults: Value) {
        self.ask(&json!({"faults": faults})).await;
    }

    /// The requests for a method and a path, the path as it begins.
    pub(crate) async fn log(&mut self, method: &str, path: &str) -> Vec<Value> {
        let log = self.ask(&json!({"log": true})).await;
        let entries = log["log"].as_array().or(log.as_array()).unwrap().clone();
        let ours = |entry: &Value| {
            entry["method"] == method && entry["path"].as_str().is_some_and(|known| known.starts_with(path))
        };
        entries.into_iter().filter(ours).collect()
    }

    /// The ids of all orders.
    pub(crate) async fn orders(&mut self) -> Vec<String> {
        let orders = self.ask(&json!({"orders": true})).await;
        let orders = orders["orders"].as_array().or(orders.as_array()).unwrap().clone();
        orders.iter().map(|order| order["id"].as_str().unwrap().to_owned()).collect()
    }

    /// What was taken of a currency and what was paid back, in its minor units.
    pub(crate) async fn money(&mut self, currency: &str) -> (u64, u64) {
        let answer = self.ask(&json!({"money": true})).await;
        let money = answer.get("money").unwrap_or(&answer);
        let of = |what: &str| money[what][currency].as_u64().unwrap_or(0);
        (of("taken"), of("refunded"))
    }

    /// What did not fit the processor's published description of its API.
    pub(crate) async fn violations(&mut self) -> Vec<Value> {
        let answer = self.ask(&json!({"violations": true})).await;
        answer["violations"].as_array().or(answer.as_array()).unwrap().clone()
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
