//! The scripts that the server runs, each of them at once and whole.

use std::fmt::Display;

use redis::Cmd;

use crate::redis_client::{Error, RedisClient};

/// A script, known to the server by its hash.
pub(super) struct Script {
    text: String,
    hash: String,
}

/// All of them.
pub(super) struct Scripts {
    /// Writes a new record; refused when the server's memory is full.
    pub issue: Script,
    /// Replaces a record; not refused then, since this is how memory becomes free again.
    pub commit: Script,
    pub erase: Script,
    pub append: Script,
    pub postpone: Script,
    pub repair: Script,
    pub reserve: Script,
    pub release: Script,
    pub join: Script,
    pub chain: Script,
    pub trim: Script,
    pub lease: Script,
    pub keys: Script,
    pub probe: Script,
}

const NONCES: &str = include_str!("scripts/nonces.lua");
const NOTE: &str = include_str!("scripts/note.lua");

impl Scripts {
    pub(super) fn new() -> Self {
        let commit = include_str!("scripts/commit.lua");
        Self {
            issue: Script::new(Memory::MustBeThere, &[NONCES, NOTE, commit]),
            commit: Script::new(Memory::MayBeFull, &[NONCES, NOTE, commit]),
            erase: Script::new(Memory::MayBeFull, &[NOTE, include_str!("scripts/erase.lua")]),
            append: Script::new(Memory::MayBeFull, &[NONCES, NOTE, include_str!("scripts/append.lua")]),
            postpone: Script::new(Memory::MayBeFull, &[include_str!("scripts/postpone.lua")]),
            repair: Script::new(Memory::MayBeFull, &[include_str!("scripts/repair.lua")]),
            reserve: Script::new(Memory::MayBeFull, &[include_str!("scripts/reserve.lua")]),
            release: Script::new(Memory::MayBeFull, &[include_str!("scripts/release.lua")]),
            join: Script::new(Memory::MustBeThere, &[include_str!("scripts/join.lua")]),
            chain: Script::new(Memory::MayBeFull, &[include_str!("scripts/chain.lua")]),
            trim: Script::new(Memory::MayBeFull, &[include_str!("scripts/trim.lua")]),
            lease: Script::new(Memory::MayBeFull, &[include_str!("scripts/lease.lua")]),
            keys: Script::new(Memory::MayBeFull, &[include_str!("scripts/keys.lua")]),
            probe: Script::new(Memory::MayBeFull, &[include_str!("scripts/probe.lua")]),
        }
    }
}

/// Whether a script is refused when the server has no memory left.
#[derive(Clone, Copy)]
enum Memory {
    MustBeThere,
    MayBeFull,
}

impl Script {
    fn new(memory: Memory, parts: &[&str]) -> Self {
        let flags = match memory {
            Memory::MustBeThere => "#!lua\n",
            Memory::MayBeFull => "#!lua flags=allow-oom\n",
        };
        let text = format!("{flags}{}", parts.concat());
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }

    /// Starts a call; keys and arguments go to what is returned.
    pub(super) fn call(&self) -> Call<'_> {
        Call { script: self, keys: Vec::new(), arguments: Vec::new() }
    }
}

/// A call of a script.
pub(super) struct Call<'a> {
    script: &'a Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Call<'_> {
    pub(super) fn key(mut self, key: String) -> Self {
        self.keys.push(key);
        self
    }

    pub(super) fn arg(mut self, argument: impl Into<Vec<u8>>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(super) fn number(self, number: impl Display + Copy) -> Self {
        self.arg(number.to_string())
    }

    pub(super) fn args(mut self, arguments: impl IntoIterator<Item = Vec<u8>>) -> Self {
        self.arguments.extend(arguments);
        self
    }

    /// Runs it, again if the connection breaks meanwhile: every script may be run twice.
    pub(super) async fn run(&self, client: &RedisClient) -> Result<redis::Value, Error> {
        match client.run(&self.by_hash()).await {
            Err(error) if is_unknown(&error) => client.run(&self.by_text()).await,
            result => result,
        }
    }

    /// The command that names the script by its hash.
    pub(super) fn by_hash(&self) -> Cmd {
        self.command("EVALSHA", &self.script.hash)
    }

    /// The command that brings the script along, after which the server knows it.
    pub(super) fn by_text(&self) -> Cmd {
        self.command("EVAL", &self.script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}

/// Whether the server does not know the script: it is new there, or was started again.
pub(super) fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::Server { code, .. } if code == "NOSCRIPT")
}
