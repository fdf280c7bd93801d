//! `sidegate demo`: plays a tool handler that needs a secret, against a server of its own on the embedded
//! store. With `--auto` it plays the person as well, through the real page.

mod handler;
mod person;

use std::io::{IsTerminal as _, stdin};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::local::Local;
use super::{Done, Failure, block_on, say};
use crate::app::Application;
use crate::config::Config;
use crate::system::forbid_core_dumps;
use crate::telemetry;
use handler::{Ended, Handler};

/// Exit codes besides 0 (the secret arrived) and 1 (something is wrong).
const DECLINED: u8 = 3;
const EXPIRED: u8 = 4;
const ENDED: u8 = 5;
const INTERRUPTED: u8 = 130;

/// How long the service stays for the browser's last page.
const LAST_PAGE: Duration = Duration::from_secs(2);

/// Play a tool handler that needs a secret, against a server of its own.
#[derive(Args)]
pub(super) struct Demo {
    /// Play the person too, through the real page; so it is by itself where standard input is no terminal
    #[arg(long)]
    auto: bool,
    /// Leave the page to you even where standard input is no terminal
    #[arg(long, conflicts_with = "auto")]
    manual: bool,
    /// Seconds that the person has
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    expires_in: u64,
    /// Where to listen; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Keep the server's data here; without it they are in a folder that is removed at the end
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Demo {
    pub(super) fn run(self) -> Done {
        forbid_core_dumps()?;
        telemetry::start(tracing::level_filters::LevelFilter::WARN);
        let temporary = tempfile::tempdir()?;
        let data = self.data.clone().unwrap_or_else(|| temporary.path().to_owned());
        let local = Local::load_or_make(&data)?;
        let config = Config::local(&data, local.client(), local.operator())?.listen_on(self.listen)?;
        block_on(async {
            let application = Application::build(&config).await?;
            let url = application.public_url().clone();
            local.publish(&url)?;
            let stopper = application.stopper();
            let service = actix_web::rt::spawn(application.run());
            say(format!("listening on {}", url.as_str().trim_end_matches('/')))?;
            let done = tokio::select! {
                done = self.play(Handler::new(&url, local.client_key().clone(), self.expires_in)?) => done,
                _ = tokio::signal::ctrl_c() => Err(Failure::with_code(
                    INTERRUPTED,
                    "stopped; the link is dead and nothing was kept",
                )),
            };
            stopper.stop().await;
            let _ = service.await;
            done
        })
    }

    async fn play(&self, mut handler: Handler) -> Done {
        let auto = self.auto || (!self.manual && !stdin().is_terminal());
        say("A tool was called: look up the weather in Oslo. It needs a WeatherCo API key, which must not")?;
        say("pass through the chat, so its handler asks Sidegate for a link:\n")?;
        let link = handler.first_round().await?;
        say(format!("  {link}\n"))?;
        let ended = if auto {
            let person = person::play(&link);
            let (ended, person) = tokio::join!(handler.wait(), person);
            person?;
            ended?
        } else {
            let span = Duration::from_secs(self.expires_in).as_secs();
            say(format!(
                "Open it in a browser on this computer. You have {span} seconds; Ctrl-C ends the demo."
            ))?;
            let ended = handler.wait().await?;
            // The handler is told at the same moment as the browser, which has yet to fetch its last page.
            tokio::time::sleep(LAST_PAGE).await;
            ended
        };
        match ended {
            Ended::Received(values) => {
                for (name, characters) in values {
                    say(format!(
                        "handler: received `{name}`, {characters} characters long; its value is not shown anywhere"
                    ))?;
                }
                say("handler: claimed once. Sidegate has no further use for it and will destroy its copy.")?;
                Ok(())
            }
            Ended::Otherwise { outcome, sentence } => {
                let code = match outcome.as_str() {
                    "declined" => DECLINED,
                    "expired" => EXPIRED,
                    _ => ENDED,
                };
                Err(Failure::with_code(code, format!("{outcome}: {sentence}")))
            }
        }
    }
}
