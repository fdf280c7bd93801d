//! `sidegate keys`: makes and rotates the key ring.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Done, say};
use crate::domain::Clock as _;
use crate::system::{SystemClock, SystemRandom};
use crate::vault::{create_key_file, prepare_key, rotate_key_file};

/// Make or rotate the key ring.
#[derive(Subcommand)]
pub(super) enum Keys {
    /// Make a key file with one fresh key
    New {
        /// Where to write it; it must not exist yet
        #[arg(long, value_name = "PATH")]
        file: PathBuf,
    },
    /// Put the prepared key in front, or a fresh one: it seals from the next start on, the others still open
    Rotate {
        /// The key file
        #[arg(long, value_name = "PATH")]
        file: PathBuf,
        /// Add a fresh key that does not seal yet: the first of two steps where several instances share a store
        #[arg(long)]
        prepare: bool,
    },
}

impl Keys {
    pub(super) fn run(self) -> Done {
        let now = SystemClock.now();
        match self {
            Self::New { file } => {
                let id = create_key_file(&file, &SystemRandom, now)?;
                say(format!("wrote {} with the key {id}", file.display()))?;
            }
            Self::Rotate { file, prepare: true } => {
                let id = prepare_key(&file, &SystemRandom, now)?;
                say(format!(
                    "the key {id} is prepared; start every instance again with this file, then run `sidegate keys rotate --file {}` and start them once more",
                    file.display()
                ))?;
            }
            Self::Rotate { file, prepare: false } => {
                let id = rotate_key_file(&file, &SystemRandom, now)?;
                say(format!(
                    "the key {id} seals from the next start on; keep the older keys until what they sealed has ended"
                ))?;
            }
        }
        Ok(())
    }
}
