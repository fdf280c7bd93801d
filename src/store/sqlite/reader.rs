//! The threads that read.

use std::thread::JoinHandle;

use crossbeam_channel::Receiver;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tokio::sync::oneshot;

use crate::domain::{ElicitationId, Timestamp};
use crate::store::{Entry, Extent, Link, Stored, Tag, Unavailable};

pub(super) type Reply<T> = oneshot::Sender<Result<T, Unavailable>>;

/// One question to the database.
pub(super) enum Read {
    Load(ElicitationId, Reply<Option<Stored>>),
    Find(Tag, Reply<Option<Stored>>),
    Outcome(ElicitationId, Reply<Option<Vec<u8>>>),
    Visit(Tag, Timestamp, Reply<Option<Vec<u8>>>),
    Due(Timestamp, usize, Reply<Vec<Stored>>),
    Scan(Option<ElicitationId>, usize, Reply<Vec<Stored>>),
    Entries(u64, usize, Reply<Vec<Entry>>),
    Trail(Reply<Extent>),
}

/// Starts a thread that answers from `queue` until all senders are gone.
pub(super) fn start(connection: Connection, queue: Receiver<Read>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for read in queue {
            answer(&connection, read);
        }
    })
}

fn answer(connection: &Connection, read: Read) {
    match read {
        Read::Load(id, reply) => send(
            reply,
            one(connection, "SELECT id, version, record FROM records WHERE id = ?1", id.as_bytes()),
        ),
        Read::Find(tag, reply) => send(
            reply,
            one(
                connection,
                "SELECT r.id, r.version, r.record FROM slots s JOIN records r ON r.id = s.id WHERE s.tag = ?1",
                &tag.0,
            ),
        ),
        Read::Outcome(id, reply) => send(reply, outcome(connection, id)),
        Read::Visit(tag, now, reply) => send(reply, visit(connection, tag, now)),
        Read::Due(now, limit, reply) => send(
            reply,
            many(
                connection,
                "SELECT id, version, record FROM records WHERE due <= ?1 ORDER BY due LIMIT ?2",
                params![now.millis(), limit],
                stored,
            ),
        ),
        Read::Scan(after, limit, reply) => send(
            reply,
            many(
                connection,
                "SELECT id, version, record FROM records WHERE id > ?1 ORDER BY id LIMIT ?2",
                params![after.as_ref().map_or(&[][..], |after| after.as_bytes()), limit],
                stored,
            ),
        ),
        Read::Entries(after, limit, reply) => send(
            reply,
            many(
                connection,
                "SELECT number, event, hash FROM trail WHERE number > ?1 ORDER BY number LIMIT ?2",
                params![after, limit],
                |row| Ok(Entry { number: row.get(0)?, event: row.get(1)?, hash: row.get(2)? }),
            ),
        ),
        Read::Trail(reply) => send(reply, trail(connection)),
    }
}

/// A caller that has gone away needs no answer.
fn send<T>(reply: Reply<T>, result: Result<T, rusqlite::Error>) {
    let _ = reply.send(result.map_err(|error| Unavailable(error.to_string())));
}

fn one(connection: &Connection, sql: &str, key: &[u8]) -> Result<Option<Stored>, rusqlite::Error> {
    connection.prepare_cached(sql)?.query_row([key], stored).optional()
}

fn outcome(connection: &Connection, id: ElicitationId) -> Result<Option<Vec<u8>>, rusqlite::Error> {
    let mut query = connection.prepare_cached("SELECT sealed FROM outcomes WHERE id = ?1")?;
    query.query_row([id.as_bytes()], |row| row.get(0)).optional()
}

fn visit(connection: &Connection, tag: Tag, now: Timestamp) -> Result<Option<Vec<u8>>, rusqlite::Error> {
    let mut query = connection.prepare_cached("SELECT sealed FROM visits WHERE tag = ?1 AND until > ?2")?;
    query.query_row(params![tag.0, now.millis()], |row| row.get(0)).optional()
}

fn trail(connection: &Connection) -> Result<Extent, rusqlite::Error> {
    let mut query =
        connection.prepare_cached("SELECT number, hash FROM trail ORDER BY number DESC LIMIT 1")?;
    let link = |row: &Row<'_>| Ok(Link { number: row.get(0)?, hash: row.get(1)? });
    let end = query.query_row([], link).optional()?;
    let mut query = connection.prepare_cached("SELECT number, hash FROM trail_start")?;
    let start = query.query_row([], link).optional()?.unwrap_or_default();
    Ok(Extent { start, end: end.unwrap_or(start) })
}

fn many<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    map: impl Fn(&Row<'_>) -> Result<T, rusqlite::Error>,
) -> Result<Vec<T>, rusqlite::Error> {
    connection.prepare_cached(sql)?.query_map(parameters, map)?.collect()
}

fn stored(row: &Row<'_>) -> Result<Stored, rusqlite::Error> {
    Ok(Stored { id: ElicitationId::from_bytes(row.get(0)?), version: row.get(1)?, record: row.get(2)? })
}
