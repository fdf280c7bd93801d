//! The task that keeps a connection: connects, inspects, waits until it breaks, connects again.

use std::time::Duration;

use redis::PushKind;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::{Error, RESPONSE_TIME, Settings, State, connect, durability, told};

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
        let error = match attempt {
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
            Err(_) => Error::Unreachable("Redis did not answer in time".to_owned()),
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
    let report =
        inspection.await.map_err(|_| Error::Unreachable("Redis did not answer in time".to_owned()))??;
    report.fits(&settings.demands).map_err(Error::Unfit)?;
    Ok(State::Up { number, connection, report })
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
