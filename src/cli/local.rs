//! The keys of a service that nobody configured: made at its first start and kept in `dev.json` in its data
//! folder, for scripts and tests.

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::Failure;
use crate::api_key::{Holder, KeyDigest, generate, is_well_formed};
use crate::system::SystemRandom;

/// The keys of a local service.
pub(super) struct Local {
    file: PathBuf,
    client: SecretString,
    operator: SecretString,
    /// Empty before the first start.
    url: String,
}

/// The id of a local service's client.
const CLIENT: &str = "local";

impl Local {
    /// Reads `dev.json` under `data`, or makes keys that [`Local::publish`] will write there.
    pub(super) fn load_or_make(data: &Path) -> Result<Self, Failure> {
        make_folder(data)?;
        Ok(Self::load_or_make_in(data))
    }

    fn load_or_make_in(data: &Path) -> Self {
        let file = data.join("dev.json");
        let known = fs::read(&file).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let text = |name: &str| known.as_ref().and_then(|known| known.get(name)?.as_str()).map(str::to_owned);
        let key = |name: &str, holder: Holder| {
            text(name)
                .filter(|key| is_well_formed(holder, key))
                .map_or_else(|| generate(holder, &SystemRandom), SecretString::from)
        };
        Self {
            client: key("apiKey", Holder::Client),
            operator: key("operatorKey", Holder::Operator),
            url: text("url").unwrap_or_default(),
            file,
        }
    }

    pub(super) fn client(&self) -> KeyDigest {
        KeyDigest::of(&self.client)
    }

    pub(super) fn operator(&self) -> KeyDigest {
        KeyDigest::of(&self.operator)
    }

    /// The client's key.
    pub(super) const fn client_key(&self) -> &SecretString {
        &self.client
    }

    /// The operator's key.
    pub(super) const fn operator_key(&self) -> &SecretString {
        &self.operator
    }

    /// Where the service was when it last started.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Reads the `dev.json` of a local service that has been started under `data`.
    pub(super) fn load(data: &Path) -> Result<Self, Failure> {
        let known = Self::load_or_make_in(data);
        if known.url.is_empty() {
            return Err(Failure::new(
                "there is no local service's `dev.json` in the data folder; name one with --data, or a service with --url and --operator-key-file",
            ));
        }
        Ok(known)
    }

    /// Writes `dev.json`, mode 0600, with the URL under which the service can be reached now.
    pub(super) fn publish(&self, url: &Url) -> Result<(), Failure> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let content = json!({
            "url": url.as_str().trim_end_matches('/'),
            "clientId": CLIENT,
            "apiKey": self.client.expose_secret(),
            "operatorKey": self.operator.expose_secret(),
        });
        writeln!(file, "{content:#}")?;
        file.persist(&self.file)?;
        Ok(())
    }
}

/// Makes the data folder if it is missing, for its owner alone.
pub(super) fn make_folder(data: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data)
        .map_err(|error| Failure::new(format!("cannot make the data folder {}: {error}", data.display())))
}
