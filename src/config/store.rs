//! The section `[store]`: one database file, or a server that several instances share.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::file::{Store, StoreTls};
use super::validate::seconds;
use super::{ConfigError, SharedStore, StoreSettings};
use crate::redis_client::{Address, Demands, Settings, Tls};

const PREFIX: &str = "sidegate";
const TRAIL_RETENTION: u64 = 30 * 86_400;
/// A day to ten years.
const TRAIL_RETENTIONS: RangeInclusive<u64> = 86_400..=315_360_000;
const LONGEST_PREFIX: usize = 64;

pub(super) fn checked(store: Store, data: &Path) -> Result<StoreSettings, ConfigError> {
    match &store.url {
        Some(url) if Address::is_meant(url) => {
            let address =
                Address::parse(url).map_err(|error| ConfigError::new(format!("`store.url` {error}")))?;
            shared(store, address).map(|shared| StoreSettings::Shared(Box::new(shared)))
        }
        url => {
            let file = embedded(url.as_deref(), data)?;
            for (given, key) in [
                (store.prefix.is_some(), "prefix"),
                (store.username.is_some(), "username"),
                (store.password_file.is_some(), "password_file"),
                (store.sentinel_password_file.is_some(), "sentinel_password_file"),
                (store.tls.is_some(), "tls"),
                (store.durability.is_some(), "durability"),
                (store.allow_eviction.is_some(), "allow_eviction"),
            ] {
                if given {
                    return Err(ConfigError::new(format!(
                        "`store.{key}` is for a shared store; remove it, or set `store.url` to a redis:// URL"
                    )));
                }
            }
            let trail_retention = store.trail_retention.map(trail_retention).transpose()?;
            Ok(StoreSettings::Embedded { file, trail_retention })
        }
    }
}

fn embedded(url: Option<&str>, data: &Path) -> Result<PathBuf, ConfigError> {
    let Some(url) = url else { return Ok(data.join("sidegate.db")) };
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        _ => Err(ConfigError::new(
            "`store.url` must be `sqlite:` and the path of the database file, or a redis://, redis+sentinel:// or redis+cluster:// URL",
        )),
    }
}

fn shared(store: Store, mut address: Address) -> Result<SharedStore, ConfigError> {
    if store.username.is_some() {
        address.username = store.username;
    }
    if let Some(file) = store.password_file {
        address.password = Some(password("store.password_file", &file)?);
    }
    if let Some(file) = store.sentinel_password_file {
        address.sentinel_password = Some(password("store.sentinel_password_file", &file)?);
    }
    if let Some(files) = store.tls {
        if address.tls.is_none() {
            return Err(ConfigError::new("`store.tls` is set, but `store.url` is not `rediss`; make it so"));
        }
        address.tls = Some(tls(&files)?);
    }
    let prefix = store.prefix.unwrap_or_else(|| PREFIX.to_owned());
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if prefix.is_empty() || prefix.len() > LONGEST_PREFIX || !prefix.chars().all(good) {
        return Err(ConfigError::new(
            "`store.prefix` must be 1 to 64 letters, digits, `-`, `_`, `.`, `:` or `/`",
        ));
    }
    let demands = Demands {
        durability: store.durability.unwrap_or_default(),
        allow_eviction: store.allow_eviction.unwrap_or(false),
    };
    Ok(SharedStore {
        server: Settings { address, demands },
        prefix,
        trail_retention: trail_retention(store.trail_retention.unwrap_or(TRAIL_RETENTION))?,
    })
}

fn trail_retention(retention: u64) -> Result<Duration, ConfigError> {
    seconds("store.trail_retention", retention, TRAIL_RETENTIONS)
}

pub(super) fn password(key: &str, file: &Path) -> Result<SecretString, ConfigError> {
    let bytes = Zeroizing::new(read(key, file)?);
    let text = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    if text.is_empty() {
        return Err(ConfigError::new(format!("`{key}`: {} must hold a password as text", file.display())));
    }
    Ok(SecretString::from(text))
}

fn tls(files: &StoreTls) -> Result<Tls, ConfigError> {
    let ca = files.ca.as_ref().map(|file| read("store.tls.ca", file)).transpose()?;
    let client = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            Some((read("store.tls.certificate", certificate)?, read("store.tls.key", key)?))
        }
        (None, None) => None,
        _ => {
            return Err(ConfigError::new("`store.tls` needs both `certificate` and `key`, or neither"));
        }
    };
    Ok(Tls { ca, client })
}

pub(super) fn read(key: &str, file: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(file)
        .map_err(|error| ConfigError::new(format!("`{key}`: {} cannot be read: {error}", file.display())))
}
