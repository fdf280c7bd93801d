//! The task that keeps a connection: connects, inspects, waits until it breaks, connects again.

use std::time::Duration;

use redis::PushKind;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::{Address, Error, RESPONSE_TIME, Settings, State, connect, durability, told};

/// The pause before another attempt: from the first to the second, doubled each time.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// How long an attempt may take, since some of its steps have no limit of their own.
const ATTEMPT_TIME: Duration = Duration::from_secs(8);

/// Keeps a connection until every [`super::RedisClient`] of it is gone.
pub(super) async fn keep(
    settings: Settings,
    states: watch::Sender<State>,
    mut reports: mpsc::UnboundedReceiver<u64>,
    broken: mpsc::WeakUnboundedSender<u64>,
) {
    let (mut number, mut pause, mut said) = (0, PAUSES[0], None);
    while !states.is_closed() {
        number += 1;
        let attempt = timeout(ATTEMPT_TIME, attempt(&settings, number, broken.clone())).await;
        let error = match attempt.map(|attempt| attempt.map_err(|error| advised(error, &settings.address))) {
            Ok(Ok(State::Up { number, connection, report })) => {
                if said.as_ref() != Some(&report) {
                    for sentence in report.sentences() {
                        tracing::info!("store: {sentence}");
                    }
                    said = Some(report.clone());
                }
                pause = PAUSES[0];
                states.send_replace(State::Up { number, connection, report });
                if !breaks(number, &mut reports).await {
                    return;
                }
                tracing::warn!("the connection to Redis broke; connecting again");
                states.send_replace(State::Connecting);
                continue;
            }
            Ok(Ok(_)) => continue,
            Ok(Err(error)) => error,
            Err(_) => advised(Error::late(), &settings.address),
        };
        if !matches!(&*states.borrow(), State::Down(_)) {
            tracing::error!(%error, "there is no connection to Redis; every step is refused until there is");
        }
        states.send_replace(State::Down(error));
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES[1]);
    }
}

async fn attempt(
    settings: &Settings,
    number: u64,
    broken: mpsc::WeakUnboundedSender<u64>,
) -> Result<State, Error> {
    let pushes = Box::new(move |push: redis::PushInfo| {
        if push.kind == PushKind::Disconnection
            && let Some(broken) = broken.upgrade()
        {
            let _ = broken.send(number);
        }
    });
    let mut connection = connect::connect(&settings.address, pushes).await.map_err(|error| told(&error))?;
    let inspection = timeout(RESPONSE_TIME, durability::inspect(&mut connection));
    let report = inspection.await.map_err(|_| Error::late())??;
    report.fits(&settings.demands).map_err(Error::Unfit)?;
    Ok(State::Up { number, connection, report })
}

/// An error, with what to look at where that is known.
fn advised(error: Error, address: &Address) -> Error {
    let text = error.to_string();
    let advice = if text.contains("DB index") {
        "the number after the last slash of the URL must be one of the server's databases"
    } else if text.contains("cluster support disabled") {
        "this is one server and no Cluster; write redis://HOST:PORT"
    } else if text.contains("ClusterConnectionNotFound") {
        "none of the nodes answers, or its Cluster has no slots yet"
    } else if text.contains("MasterNameNotFound") {
        "the Sentinels do not watch a server of the name in the URL"
    } else if text.contains("not point to a sentinel") {
        "this is no Sentinel; write redis://HOST:PORT for the server itself"
    } else if text.contains("WRONGPASS") || text.contains("NOAUTH") {
        "look at `store.username` and `store.password_file`, or at the URL"
    } else if matches!(error, Error::Unreachable(_)) && address.tls.is_some() {
        "the URL says TLS: is this its TLS port, and is its certificate signed by `store.tls.ca`?"
    } else if matches!(error, Error::Unreachable(_)) && (text.contains("closed") || text.contains("reset")) {
        "if this is a TLS port, write `rediss`"
    } else {
        return error;
    };
    match error {
        Error::Unreachable(text) => Error::Unreachable(format!("{text}: {advice}")),
        Error::Server { code, text } => Error::Server { code, text: format!("{text}: {advice}") },
        unfit @ Error::Unfit(_) => unfit,
    }
}

/// Waits until the connection of this number is reported broken; `false` if nobody is left to report it.
async fn breaks(number: u64, reports: &mut mpsc::UnboundedReceiver<u64>) -> bool {
    while let Some(reported) = reports.recv().await {
        if reported == number {
            return true;
        }
    }
    false
}
