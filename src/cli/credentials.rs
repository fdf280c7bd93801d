//! `sidegate client new` and `sidegate operator new`: make API keys. The service keeps their digests only.

use clap::{Args, Subcommand};
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::{Done, say};
use crate::api_key::{Holder, KeyDigest, generate};
use crate::system::SystemRandom;

/// Make a key for an API client.
#[derive(Subcommand)]
pub(super) enum Client {
    /// Make a key and print it once, with the lines for the configuration
    New(New),
}

/// Make a key for an operator.
#[derive(Subcommand)]
pub(super) enum Operator {
    /// Make a key and print it once, with the lines for the configuration
    New(New),
}

#[derive(Args)]
pub(super) struct New {
    /// The id in the configuration
    #[arg(long)]
    id: String,
    /// Print {"id", "apiKey", "digest"} instead
    #[arg(long)]
    json: bool,
}

impl Client {
    pub(super) fn run(self) -> Done {
        let Self::New(new) = self;
        let more = "name = \"What people read\"\nidentity = \"NAME\"\nkinds = [\"secret\"]\n";
        new.run(Holder::Client, "clients", more)
    }
}

impl Operator {
    pub(super) fn run(self) -> Done {
        let Self::New(new) = self;
        new.run(Holder::Operator, "operators", "")
    }
}

impl New {
    fn run(self, holder: Holder, section: &str, more: &str) -> Done {
        let key = generate(holder, &SystemRandom);
        let digest = KeyDigest::of(&key).to_string();
        let (id, shown) = (self.id, key.expose_secret());
        if self.json {
            say(json!({"id": id, "apiKey": shown, "digest": digest}).to_string())?;
        } else {
            say(format!(
                "API key, shown this once: {shown}\n\nFor the configuration:\n\n[[{section}]]\nid = \"{id}\"\napi_key_digests = [\"{digest}\"]\n{more}"
            ))?;
        }
        Ok(())
    }
}
