//! The file that holds the key ring: TOML, a list of `[[keys]]` with `id` and `secret`, readable by its owner
//! alone. The first seals; one that is `prepared` opens only, until a rotation puts it in front.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use super::{Ring, RingKey};
use crate::domain::{Random, Timestamp};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    keys: Vec<KeyEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    id: String,
    secret: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    prepared: bool,
}

impl Drop for KeyEntry {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

/// A key file that cannot be used, with what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The operating system refused.
    #[error("key file {0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// Others than the owner may read it.
    #[error("key file {0} can be read by others; run `chmod 600` on it")]
    Exposed(PathBuf),
    /// The text is not a key file.
    #[error("key file {0}: {1}")]
    Malformed(PathBuf, &'static str),
    /// A key file is there already.
    #[error("{0} exists already; add a key to it with `sidegate keys rotate --file {0}`")]
    Exists(PathBuf),
    /// A key is prepared already.
    #[error(
        "{0} has the key {1} prepared already; once every instance was started with it, run `sidegate keys rotate --file {0}`"
    )]
    Prepared(PathBuf, String),
}

/// Reads the key ring.
///
/// # Errors
/// [`KeyFileError`] if the file is missing, readable by others, malformed, or has no key.
pub fn load_key_file(path: &Path, random: Arc<dyn Random>) -> Result<Ring, KeyFileError> {
    let malformed = |why| KeyFileError::Malformed(path.to_owned(), why);
    let file = read(path)?;
    let mut keys = Vec::with_capacity(file.keys.len());
    for entry in &file.keys {
        if entry.id.is_empty() || entry.id.len() > 64 {
            return Err(malformed("every `id` must have 1 to 64 bytes"));
        }
        if file.keys.iter().filter(|other| other.id == entry.id).count() > 1 {
            return Err(malformed("two keys have the same `id`"));
        }
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(&entry.secret).unwrap_or_default());
        let secret = bytes
            .as_slice()
            .try_into()
            .map_err(|_| malformed("every `secret` must be the base64url of 32 bytes"))?;
        keys.push(RingKey::new(entry.id.clone(), secret).map_err(|_| malformed("a key cannot be used"))?);
    }
    let mut keys = keys.into_iter();
    let first = keys.next().ok_or_else(|| malformed("there is no key in it"))?;
    if file.keys.first().is_some_and(|entry| entry.prepared) {
        return Err(malformed("its first key is only prepared; put one before it that seals"));
    }
    Ok(Ring::new(first, keys.collect(), random))
}

/// Writes a new key file with one fresh key, mode 0600. Returns the key's id.
///
/// # Errors
/// [`KeyFileError::Exists`] rather than overwrite; [`KeyFileError::Io`].
pub fn create_key_file(path: &Path, random: &dyn Random, now: Timestamp) -> Result<String, KeyFileError> {
    let entry = fresh(random, now);
    let id = entry.id.clone();
    let file = write_beside(path, &KeyFile { keys: vec![entry] })?;
    file.persist_noclobber(path).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => KeyFileError::Exists(path.to_owned()),
        _ => KeyFileError::Io(path.to_owned(), error.error),
    })?;
    Ok(id)
}

/// Puts a key in front of the others: it seals from the next start on. That is the one that was prepared, or else a fresh
/// one. Returns its id.
///
/// # Errors
/// [`KeyFileError`]. The file is replaced as a whole or not at all.
pub fn rotate_key_file(path: &Path, random: &dyn Random, now: Timestamp) -> Result<String, KeyFileError> {
    let mut file = read(path)?;
    let prepared = file.keys.iter().position(|entry| entry.prepared).map(|index| file.keys.remove(index));
    let mut entry = prepared.unwrap_or_else(|| fresh(random, now));
    entry.prepared = false;
    let id = entry.id.clone();
    file.keys.insert(0, entry);
    replace(path, &file)?;
    Ok(id)
}

/// Adds a fresh key that opens from the next start on and does not seal yet, for instances that share a store: all of
/// them must know a key before one seals under it. Returns its id.
///
/// # Errors
/// [`KeyFileError`], also if one is prepared already. The file is replaced as a whole or not at all.
pub fn prepare_key(path: &Path, random: &dyn Random, now: Timestamp) -> Result<String, KeyFileError> {
    let mut file = read(path)?;
    if let Some(entry) = file.keys.iter().find(|entry| entry.prepared) {
        return Err(KeyFileError::Prepared(path.to_owned(), entry.id.clone()));
    }
    let mut entry = fresh(random, now);
    entry.prepared = true;
    let id = entry.id.clone();
    file.keys.push(entry);
    replace(path, &file)?;
    Ok(id)
}

/// The file keeps its owner: the service must still be able to read it when somebody else has rotated.
fn replace(path: &Path, file: &KeyFile) -> Result<(), KeyFileError> {
    let io = |error| KeyFileError::Io(path.to_owned(), error);
    let before = fs::metadata(path).map_err(io)?;
    let written = write_beside(path, file)?;
    let after = written.as_file().metadata().map_err(io)?;
    if (before.uid(), before.gid()) != (after.uid(), after.gid()) {
        fchown(written.as_file(), Some(before.uid()), Some(before.gid())).map_err(io)?;
    }
    written.persist(path).map(drop).map_err(|error| io(error.error))
}

fn read(path: &Path) -> Result<KeyFile, KeyFileError> {
    let io = |error| KeyFileError::Io(path.to_owned(), error);
    let mode = fs::metadata(path).map_err(io)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Exposed(path.to_owned()));
    }
    let text = Zeroizing::new(fs::read_to_string(path).map_err(io)?);
    // The parser's own message would quote the line, and with it a secret.
    toml::from_str(&text).map_err(|_| {
        KeyFileError::Malformed(path.to_owned(), "it must be TOML: a list of [[keys]] with `id` and `secret`")
    })
}

fn fresh(random: &dyn Random, now: Timestamp) -> KeyEntry {
    let mut secret = Zeroizing::new([0; 32]);
    random.fill(&mut *secret);
    let mut suffix = [0; 3];
    random.fill(&mut suffix);
    let day = now.to_string().chars().take(10).collect::<String>();
    KeyEntry {
        id: format!("{day}-{}", URL_SAFE_NO_PAD.encode(suffix)),
        secret: URL_SAFE_NO_PAD.encode(*secret),
        prepared: false,
    }
}

/// A finished temporary file (created with mode 0600) in the folder where `path` is to be.
fn write_beside(path: &Path, file: &KeyFile) -> Result<tempfile::NamedTempFile, KeyFileError> {
    let io = |error| KeyFileError::Io(path.to_owned(), error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut written =
        String::from("# Sidegate's key ring. The first key seals, all of them open. Keep it secret.\n");
    for entry in &file.keys {
        written.push_str("\n[[keys]]\n");
        let entry = toml::to_string(entry)
            .map_err(|_| KeyFileError::Malformed(path.to_owned(), "an `id` in it cannot be written"))?;
        written.push_str(&entry);
    }
    let written = Zeroizing::new(written);
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    temporary.write_all(written.as_bytes()).map_err(io)?;
    temporary.as_file().sync_all().map_err(io)?;
    Ok(temporary)
}
