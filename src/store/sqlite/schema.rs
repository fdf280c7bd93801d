//! Opens database files: the pragmas, the tables, and the lock that keeps a second process out.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// Why a store cannot be opened: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the store at {0} is in use by another process; stop that one first")]
    InUse(PathBuf),
    /// A newer version of the program wrote it.
    #[error("the store at {0} was written by a newer version of Sidegate (schema {1}); use that version")]
    Newer(PathBuf, i64),
    /// The operating system refused.
    #[error("cannot open the store at {0}: {1}")]
    Io(PathBuf, std::io::Error),
    /// SQLite refused.
    #[error("cannot open the store at {0}: {1}")]
    Sqlite(PathBuf, rusqlite::Error),
}

/// How long a connection waits for another program that has the database locked.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const SCHEMA: i64 = 3;
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS records (
        id BLOB PRIMARY KEY, version INTEGER NOT NULL, due INTEGER NOT NULL, record BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS records_due ON records (due);
    CREATE TABLE IF NOT EXISTS outcomes (id BLOB PRIMARY KEY, sealed BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS slots (tag BLOB PRIMARY KEY, id BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS counts (tag BLOB PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS trail (number INTEGER PRIMARY KEY, event BLOB NOT NULL, hash BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS pings (one INTEGER PRIMARY KEY, count INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS visits (
        tag BLOB PRIMARY KEY, until INTEGER NOT NULL, sealed BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS visits_until ON visits (until);
    CREATE TABLE IF NOT EXISTS trail_start (one INTEGER PRIMARY KEY, number INTEGER NOT NULL, hash BLOB NOT NULL);
    PRAGMA user_version = 3;
";

/// The lock on a database; it ends with the process or when dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

/// Locks the database at `path` for this process.
pub(super) fn lock(path: &Path) -> Result<Lock, OpenError> {
    let io = |error| OpenError::Io(path.to_owned(), error);
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(name).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

/// The connection that writes. Makes the database, for its owner alone, if it is missing.
pub(super) fn writer(path: &Path) -> Result<Connection, OpenError> {
    let io = |error| OpenError::Io(path.to_owned(), error);
    // SQLite gives its side files the mode of the database.
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path).map_err(io)?;
    let sqlite = |error| OpenError::Sqlite(path.to_owned(), error);
    let connection = Connection::open(path).map_err(sqlite)?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(sqlite)?;
    if version > SCHEMA {
        return Err(OpenError::Newer(path.to_owned(), version));
    }
    prepare(&connection).map_err(sqlite)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // What is deleted is overwritten with zeros, not merely forgotten (R25).
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(TABLES)
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection, OpenError> {
    let sqlite = |error| OpenError::Sqlite(path.to_owned(), error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}
