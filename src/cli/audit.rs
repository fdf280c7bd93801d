//! `sidegate audit`: reads the audit trail from the store, also while the service runs.

use std::sync::Arc;

use clap::Subcommand;
use serde_json::json;

use super::{Done, Failure, Place, block_on, say};
use crate::app::open_to_read;
use crate::domain::Event;
use crate::flow::trail::read_trail;
use crate::store::Extent;
use crate::system::SystemRandom;
use crate::vault::load_key_file;

/// Read the audit trail.
#[derive(Subcommand)]
pub(super) enum Audit {
    /// Check that no entry was changed, removed or reordered
    Verify(Place),
    /// Print every entry as a line of JSON
    Export(Place),
}

impl Audit {
    pub(super) fn run(self) -> Done {
        match self {
            Self::Verify(place) => {
                let mut sealed = 0;
                let Extent { start, end } = read(&place, |_, event| {
                    sealed += u64::from(event.is_none());
                    Ok(())
                })?;
                let count = end.number - start.number;
                if count == 0 {
                    say("0 entries, in order and unchanged")?;
                } else {
                    let first = start.number + 1;
                    say(format!("{count} entries, in order and unchanged: {first} to {end}"))?;
                }
                if start.number > 0 {
                    say("older ones are gone; a shared store keeps them for `store.trail_retention`")?;
                }
                if sealed > 0 {
                    say(format!(
                        "{sealed} of them were sealed under keys that are no longer in the key ring"
                    ))?;
                }
            }
            Self::Export(place) => {
                read(&place, |number, event| {
                    // What cannot be read any more keeps its number.
                    let mut line =
                        event.as_ref().map_or_else(|| json!({"sealed": true}), |event| json!(event));
                    if let Some(line) = line.as_object_mut() {
                        line.insert("number".to_owned(), json!(number));
                        if let Some(event) = event {
                            line.insert("at".to_owned(), json!(event.at.to_string()));
                        }
                    }
                    say(line.to_string())
                })?;
            }
        }
        Ok(())
    }
}

fn read(
    place: &Place,
    mut each: impl FnMut(u64, Option<Event>) -> Result<(), std::io::Error>,
) -> Result<Extent, Failure> {
    let (config, _) = place.load()?;
    let ring = load_key_file(&config.key_file, Arc::new(SystemRandom))?;
    block_on(async {
        let store = open_to_read(&config).await?;
        let mut written = Ok(());
        let extent = read_trail(&*store, &ring, |number, event| {
            if written.is_ok() {
                written = each(number, event);
            }
        });
        let extent = extent.await?;
        written?;
        Ok(extent)
    })
}
