//! A connection that hears what is published on one channel.

use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use super::{Connection, Error, RESPONSE_TIME, Settings, connect, told};

/// Hears one channel until it is dropped or the connection breaks.
pub struct Listener {
    _connection: MultiplexedConnection,
}

impl Listener {
    /// Connects and subscribes; what is heard, and that the connection broke, goes to `pushes`. `turn` chooses among
    /// several nodes that serve as well.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn connect(
        settings: &Settings,
        turn: usize,
        channel: &str,
        pushes: UnboundedSender<redis::PushInfo>,
    ) -> Result<Self, Error> {
        let receiver = Box::new(move |push| {
            let _ = pushes.send(push);
        });
        let connecting = connect::connect_to_hear(&settings.address, turn, receiver);
        let connection = timeout(2 * RESPONSE_TIME, connecting).await.map_err(|_| Error::late())?;
        let Connection::Node(mut node) = connection.map_err(|error| told(&error))? else {
            return Err(Error::Unreachable("one node cannot be told from a Cluster".to_owned()));
        };
        node.subscribe(channel).await.map_err(|error| told(&error))?;
        Ok(Self { _connection: node })
    }
}
