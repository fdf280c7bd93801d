//! What is done at providers in nobody's time: a browser or a handler that goes away meanwhile ends none of it.
//!
//! Who wants something done puts an `Errand` into the queue. The composition root runs [`Gate::run_errands`], which does many
//! of them at once. What must not be lost is in the store before it is put here, or is worth nothing without an answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{join_all, join4};
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;

use super::callback::Exchange;
use super::refresh::Refresh;
use super::undo::Undoing;
use super::{Error, Gate};
use crate::domain::{ClientId, ElicitationId};

/// How many wait at most.
const WAIT: usize = 4096;
/// How many are done at once.
const AT_ONCE: usize = 256;
/// The same of revocations, for which nobody waits.
const UNDOS_AT_ONCE: usize = 16;

/// How many elicitations have their orders looked at at once.
const ORDERS_AT_ONCE: usize = 64;

/// Something to be done at a provider.
pub(super) enum Errand {
    /// To exchange a code for tokens.
    Exchange(Box<Exchange>),
    /// To renew kept tokens.
    Refresh(Box<Refresh>),
}

/// The queues: one of what somebody waits for, and others of what nobody does, which never stand in its way: revocations, and
/// orders at payment processors.
pub struct Errands {
    asked: Queue<Errand>,
    undos: Queue<Undoing>,
    orders: Queue<(ElicitationId, Vec<String>)>,
    /// One for each client that is told, since to one endpoint one message goes at a time.
    notices: BTreeMap<ClientId, Queue<ElicitationId>>,
}

struct Queue<T> {
    sender: Mutex<Option<mpsc::Sender<T>>>,
    receiver: Mutex<Option<mpsc::Receiver<T>>>,
}

impl Errands {
    /// Empty queues; these clients are told what happens.
    pub fn new(told: impl IntoIterator<Item = ClientId>) -> Self {
        Self {
            notices: told.into_iter().map(|client| (client, Queue::new())).collect(),
            asked: Queue::new(),
            undos: Queue::new(),
            orders: Queue::new(),
        }
    }
}

impl<T> Queue<T> {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel(WAIT);
        Self { sender: Mutex::new(Some(sender)), receiver: Mutex::new(Some(receiver)) }
    }

    fn sender(&self) -> Option<mpsc::Sender<T>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// What there is and comes, until it is closed; nothing if somebody else has it already.
    fn items(&self) -> impl stream::Stream<Item = T> {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        stream::unfold(receiver, async |receiver| {
            let mut receiver = receiver?;
            let item = receiver.recv().await?;
            Some((item, Some(receiver)))
        })
    }
}

impl Errands {
    /// Takes no more: [`Gate::run_errands`] ends when it has done what there is.
    pub fn close(&self) {
        self.asked.close();
        self.undos.close();
        self.orders.close();
        self.notices.values().for_each(Queue::close);
    }

    /// Room for one errand.
    pub(super) fn room(&self) -> Result<mpsc::OwnedPermit<Errand>, Error> {
        let room = self.asked.sender().and_then(|sender| sender.try_reserve_owned().ok());
        room.ok_or_else(|| Error::Unavailable("too much waits to be done at providers".to_owned()))
    }

    /// Has orders of an elicitation looked at, by their names.
    pub(super) fn look_at(&self, id: ElicitationId, orders: Vec<String>) {
        if !orders.is_empty()
            && let Some(sender) = self.orders.sender()
        {
            let _ = sender.try_send((id, orders));
        }
    }

    /// Has a client told what became of an elicitation.
    pub(super) fn tell(&self, client: &ClientId, id: ElicitationId) {
        if let Some(sender) = self.notices.get(client).and_then(Queue::sender) {
            let _ = sender.try_send(id);
        }
    }

    /// Has tokens revoked; whether there was room for it.
    pub(super) fn undo(&self, undoing: Undoing) -> bool {
        self.undos.sender().is_some_and(|sender| sender.try_send(undoing).is_ok())
    }
}

impl Gate {
    /// Does what is to be done at providers, until the queues are closed.
    pub async fn run_errands(&self) {
        let errands = self.errands.asked.items().for_each_concurrent(AT_ONCE, async |errand| match errand {
            Errand::Exchange(exchange) => self.exchange(*exchange).await,
            Errand::Refresh(refresh) => self.refresh(*refresh).await,
        });
        let undos = self
            .errands
            .undos
            .items()
            .for_each_concurrent(UNDOS_AT_ONCE, async |undoing| self.undo(undoing).await);
        let orders = self.errands.orders.items().for_each_concurrent(ORDERS_AT_ONCE, async |(id, names)| {
            self.look_at_orders(id, &names).await;
        });
        let notices = join_all(
            self.errands
                .notices
                .iter()
                .map(|(client, queue)| queue.items().for_each(async move |id| self.tell(client, id).await)),
        );
        join4(errands, undos, orders, notices).await;
    }
}
