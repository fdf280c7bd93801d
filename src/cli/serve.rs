//! `sidegate serve`: runs the service until it is told to stop.

use std::net::SocketAddr;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::local::make_folder;
use super::{Done, Failure, Place, block_on, say};
use crate::app::{Application, Stopper};
use crate::config::Config;
use crate::system::forbid_core_dumps;
use crate::telemetry;

/// Run the service.
#[derive(Args)]
pub(super) struct Serve {
    #[command(flatten)]
    place: Place,
    /// Listen here instead of where the configuration says; port 0 picks a free port
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
}

impl Serve {
    pub(super) fn run(self) -> Done {
        forbid_core_dumps()
            .map_err(|error| Failure::new(format!("core dumps cannot be turned off: {error}")))?;
        let (mut config, local) = self.place.load()?;
        if let Some(listen) = self.listen {
            config = config.listen_on(listen)?;
        }
        make_folder(&self.place.data)?;
        let _traces = start_telling(&config)?;
        block_on(async {
            let application = Application::build(&config).await?;
            if let Some(local) = local {
                local.publish(application.public_url())?;
            }
            stop_on_signal(application.stopper())?;
            say(format!("listening on {}", application.public_url().as_str().trim_end_matches('/')))?;
            application.run().await?;
            Ok(())
        })
    }
}

/// Starts the log, and traces if they are wanted: what is returned hands over the last of them when it is dropped.
#[cfg(feature = "otel")]
fn start_telling(config: &Config) -> Result<Option<telemetry::traces::Traces>, Failure> {
    let Some(settings) = &config.traces else {
        telemetry::start(config.log_level);
        return Ok(None);
    };
    let collector = crate::upstream::collector::Collector::new()?;
    let (guard, tracer) = telemetry::traces::start(settings.endpoint.as_str(), settings.ratio, collector)?;
    telemetry::start_with_traces(config.log_level, tracer);
    Ok(Some(guard))
}

/// Starts the log. This build has no traces.
#[cfg(not(feature = "otel"))]
#[expect(clippy::unnecessary_wraps, reason = "with traces it can fail")]
fn start_telling(config: &Config) -> Result<Option<telemetry::traces::Traces>, Failure> {
    telemetry::start(config.log_level);
    Ok(None)
}

/// SIGTERM and SIGINT end the service in good order.
fn stop_on_signal(stopper: Stopper) -> Done {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    actix_web::rt::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        stopper.stop().await;
    });
    Ok(())
}
