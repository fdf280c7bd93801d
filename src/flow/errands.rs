//! What is done at providers in nobody's time: a browser or a handler that goes away meanwhile ends none of it.
//!
//! Who wants something done puts an [`Errand`] into the queue. The composition root runs [`Gate::run_errands`], which does many
//! of them at once. What must not be lost is in the store before it is put here, or is worth nothing without an answer.

use std::sync::{Mutex, PoisonError};

use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;

use super::callback::Exchange;
use super::refresh::Refresh;
use super::undo::Undoing;
use super::{Error, Gate};

/// How many wait at most.
const WAIT: usize = 4096;
/// How many are done at once.
const AT_ONCE: usize = 256;

/// Something to be done at a provider.
pub(super) enum Errand {
    /// To exchange a code for tokens.
    Exchange(Box<Exchange>),
    /// To renew kept tokens.
    Refresh(Box<Refresh>),
    /// To revoke tokens that nobody needs.
    Undo(Undoing),
}

/// The queue.
pub struct Errands {
    sender: Mutex<Option<mpsc::Sender<Errand>>>,
    receiver: Mutex<Option<mpsc::Receiver<Errand>>>,
}

impl Default for Errands {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAIT);
        Self { sender: Mutex::new(Some(sender)), receiver: Mutex::new(Some(receiver)) }
    }
}

impl Errands {
    /// Takes no more: [`Gate::run_errands`] ends when it has done what there is.
    pub fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(super) fn send(&self, errand: Errand) -> Result<(), Error> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sent = sender.is_some_and(|sender| sender.try_send(errand).is_ok());
        sent.then_some(())
            .ok_or_else(|| Error::Unavailable("too much waits to be done at providers".to_owned()))
    }
}

impl Gate {
    /// Does what is to be done at providers, until the queue is closed. Does nothing if somebody else does it already.
    pub async fn run_errands(&self) {
        let receiver = self.errands.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(receiver) = receiver else { return };
        let errands = stream::unfold(receiver, async |mut receiver| {
            let errand = receiver.recv().await?;
            Some((errand, receiver))
        });
        errands
            .for_each_concurrent(AT_ONCE, async |errand| match errand {
                Errand::Exchange(exchange) => self.exchange(*exchange).await,
                Errand::Refresh(refresh) => self.refresh(*refresh).await,
                Errand::Undo(undoing) => self.undo(undoing).await,
            })
            .await;
    }
}
