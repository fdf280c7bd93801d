//! The processor `manual`, for development: a page of ours with two buttons. Nobody pays anything, and what it knows is gone
//! when the service stops.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Closing, Failure, NewOrder, Notice, Processor, Unverified, Webhook};
use crate::domain::money::Money;
use crate::domain::order::{Opened, Paid, Statement, Status};
use crate::domain::{Clock, Random, Timestamp};

/// The processor.
pub struct Manual {
    /// What the URLs of its pages begin with.
    pages: String,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    orders: Mutex<BTreeMap<String, Order>>,
}

/// An order, as its page shows it.
#[derive(Debug, Clone)]
pub struct Order {
    name: String,
    /// What for.
    pub description: String,
    /// How much.
    pub money: Money,
    /// Where the browser goes when it is paid.
    pub return_url: String,
    /// Where it goes when it is not.
    pub cancel_url: String,
    closes_at: Timestamp,
    status: Status,
}

impl Manual {
    /// A processor whose pages are below this URL.
    #[must_use]
    pub fn new(pages: String, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { pages, clock, random, orders: Mutex::default() }
    }

    /// The order of this id, while it can be paid.
    #[must_use]
    pub fn order(&self, id: &str) -> Option<Order> {
        self.with(id, |order| (order.status == Status::Open).then(|| order.clone())).flatten()
    }

    /// Somebody has pressed a button. Where the browser goes; `None` if there is nothing to be paid.
    #[must_use]
    pub fn decide(&self, id: &str, pays: bool) -> Option<String> {
        self.with(id, |order| {
            if order.status != Status::Open {
                return None;
            }
            order.status = if pays { Status::Paid(format!("manual-{id}")) } else { Status::Closed };
            Some(if pays { order.return_url.clone() } else { order.cancel_url.clone() })
        })
        .flatten()
    }

    fn with<T>(&self, id: &str, act: impl FnOnce(&mut Order) -> T) -> Option<T> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let order = orders.get_mut(id)?;
        if order.status == Status::Open && order.closes_at <= now {
            order.status = Status::Closed;
        }
        Some(act(order))
    }
}

/// For how long an order is remembered after its time.
const REMEMBERED: Duration = Duration::from_hours(24);

#[async_trait]
impl Processor for Manual {
    fn lives(&self) -> (Duration, Duration) {
        (Duration::from_secs(10), Duration::from_hours(24))
    }

    fn takes(&self, _money: Money) -> Result<(), &'static str> {
        Ok(())
    }

    async fn open(&self, order: &NewOrder<'_>) -> Result<Opened, Failure> {
        let now = self.clock.now();
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.retain(|_, order| now < order.closes_at + REMEMBERED);
        let known = orders.iter().find(|(_, known)| known.name == order.name).map(|(id, _)| id.clone());
        let id = known.unwrap_or_else(|| {
            let mut bytes = [0; 16];
            self.random.fill(&mut bytes);
            let id = URL_SAFE_NO_PAD.encode(bytes);
            let new = Order {
                name: order.name.to_owned(),
                description: order.request.description.clone(),
                money: order.request.money,
                return_url: order.return_url.clone(),
                cancel_url: order.cancel_url.clone(),
                closes_at: order.closes_at,
                status: Status::Open,
            };
            orders.insert(id.clone(), new);
            id
        });
        Ok(Opened { url: format!("{}/{id}", self.pages), id })
    }

    async fn fetch(&self, id: &str) -> Result<Statement, Failure> {
        let statement = |order: &mut Order| Statement {
            name: Some(order.name.clone()),
            status: order.status.clone(),
            money: Some(order.money),
            livemode: Some(false),
        };
        self.with(id, statement).ok_or(Failure::Unknown)
    }

    async fn close(&self, id: &str) -> Result<Closing, Failure> {
        let closed = self.with(id, |order| match order.status {
            Status::Open => {
                order.status = Status::Closed;
                Closing::Closed
            }
            Status::Closed => Closing::Closed,
            _ => Closing::LookAgain,
        });
        Ok(closed.unwrap_or(Closing::Closed))
    }

    async fn refund(&self, paid: &Paid, _key: &str) -> Result<(), Failure> {
        self.with(&paid.id, |order| order.status = Status::Refunded);
        Ok(())
    }

    async fn verify(&self, _webhook: &Webhook<'_>, _now: Timestamp) -> Result<Vec<Notice>, Unverified> {
        Err(Unverified::Missing)
    }

    async fn check(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn manual(&self) -> Option<&Manual> {
        Some(self)
    }
}
