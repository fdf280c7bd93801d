//! `sidegate audit`: reads the audit trail from the store, also while the service runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{Done, Failure, Place, block_on, say};
use crate::app::open_to_read;
use crate::domain::{Clock as _, Event, Timestamp};
use crate::flow::checkpoint::Checkpoint;
use crate::flow::trail::read_trail;
use crate::store::{Extent, Link};
use crate::system::{SystemClock, SystemRandom};
use crate::vault::{Ring, load_key_file};

/// Read the audit trail.
#[derive(Subcommand)]
pub(super) enum Audit {
    /// Check that no entry was changed, removed or reordered
    Verify {
        #[command(flatten)]
        place: Place,
        /// Check also that the trail goes through these checkpoints: lines of the log, or of `audit checkpoint`
        #[arg(long, value_name = "FILE")]
        checkpoints: Option<PathBuf>,
    },
    /// Print every entry as a line of JSON
    Export {
        #[command(flatten)]
        place: Place,
        /// Only what happened at this moment or later, such as 2026-01-31T12:00:00Z
        #[arg(long, value_name = "MOMENT")]
        since: Option<Timestamp>,
    },
    /// Sign how far the trail goes, as a line of JSON to be kept elsewhere
    Checkpoint(Place),
}

impl Audit {
    pub(super) fn run(self) -> Done {
        match self {
            Self::Verify { place, checkpoints } => verify(&place, checkpoints.as_deref()),
            Self::Export { place, since } => export(&place, since),
            Self::Checkpoint(place) => checkpoint(&place),
        }
    }
}

fn verify(place: &Place, checkpoints: Option<&Path>) -> Done {
    let ring = ring(place)?;
    let mut known = checkpoints.map(|file| read_checkpoints(file, &ring)).transpose()?.unwrap_or_default();
    let all = known.len();
    let (mut sealed, mut other) = (0_u64, None);
    let Extent { start, end } = read(place, &ring, |link, event| {
        sealed += u64::from(event.is_none());
        while known.last().is_some_and(|next| next.number <= link.number) {
            let passed = known.pop().filter(|next| next.number == link.number && next.hash != link.hash);
            other = other.take().or(passed);
        }
        Ok(())
    })?;
    if let Some(Checkpoint { number, at, .. }) = other {
        return Err(Failure::new(format!(
            "entry {number} is not the one that the checkpoint of {at} was signed for: the trail was written anew"
        )));
    }
    if let Some(Checkpoint { number, at, .. }) = known.first() {
        return Err(Failure::new(format!(
            "the trail ends at entry {}, but at {at} it went to {number}, says a checkpoint: its end was cut off",
            end.number
        )));
    }
    let count = end.number - start.number;
    if count == 0 {
        say("0 entries, in order and unchanged")?;
    } else {
        say(format!("{count} entries, in order and unchanged: {} to {end}", start.number + 1))?;
    }
    if all > 0 {
        say(format!("it goes through all {all} checkpoints"))?;
    }
    if start.number > 0 {
        say("older ones are gone; `store.trail_retention` says for how long they are kept")?;
    }
    if sealed > 0 {
        say(format!("{sealed} of them were sealed under keys that are no longer in the key ring"))?;
    }
    Ok(())
}

fn export(place: &Place, since: Option<Timestamp>) -> Done {
    read(place, &ring(place)?, |link, event| {
        // What cannot be read any more is older than what can.
        let at = event.as_ref().map(|event| event.at);
        if since.is_some_and(|since| at.is_none_or(|at| at < since)) {
            return Ok(());
        }
        // What cannot be read any more keeps its number.
        let mut line = event.as_ref().map_or_else(|| json!({"sealed": true}), |event| json!(event));
        if let Some(line) = line.as_object_mut() {
            line.insert("number".to_owned(), json!(link.number));
            if let Some(at) = at {
                line.insert("at".to_owned(), json!(at.to_string()));
            }
        }
        say(line.to_string())
    })?;
    Ok(())
}

fn checkpoint(place: &Place) -> Done {
    let (config, _) = place.load()?;
    let ring = ring(place)?;
    let end = block_on(async {
        let store = open_to_read(&config).await?;
        Ok::<_, Failure>(store.trail().await?.end)
    })?;
    Ok(say(serde_json::to_string(&Checkpoint::sign(&ring, end, SystemClock.now())?)?)?)
}

/// The checkpoints in a file, the last entry first: each on a line, or as `checkpoint` on a line of the log. Lines without one are
/// passed over; one that was not signed here is not.
fn read_checkpoints(file: &Path, ring: &Ring) -> Result<Vec<Checkpoint>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
        let value = match value.get("checkpoint") {
            Some(Value::String(inner)) => serde_json::from_str(inner).unwrap_or_default(),
            _ => value,
        };
        let Ok(checkpoint) = serde_json::from_value::<Checkpoint>(value) else { continue };
        if !checkpoint.is_ours(ring) {
            return Err(Failure::new(format!(
                "{}, line {number}: the checkpoint was not signed with a key of this key ring",
                file.display()
            )));
        }
        found.push(checkpoint);
    }
    if found.is_empty() {
        return Err(Failure::new(format!("{}: there is no checkpoint", file.display())));
    }
    found.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.number));
    Ok(found)
}

fn ring(place: &Place) -> Result<Ring, Failure> {
    let (config, _) = place.load()?;
    Ok(load_key_file(&config.key_file, Arc::new(SystemRandom))?)
}

fn read(
    place: &Place,
    ring: &Ring,
    mut each: impl FnMut(Link, Option<Event>) -> Result<(), std::io::Error>,
) -> Result<Extent, Failure> {
    let (config, _) = place.load()?;
    block_on(async {
        let store = open_to_read(&config).await?;
        let mut written = Ok(());
        let extent = read_trail(&*store, ring, |link, event| {
            if written.is_ok() {
                written = each(link, event);
            }
        });
        let extent = extent.await?;
        written?;
        Ok(extent)
    })
}
