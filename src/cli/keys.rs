//! `sidegate keys`: makes and rotates the key ring.

use std::path::PathBuf;

use clap::Subcommand;

use super::{Done, say};
use crate::domain::Clock as _;
use crate::system::{SystemClock, SystemRandom};
use crate::vault::{create_key_file, rotate_key_file};

/// Make or rotate the key ring.
#[derive(Subcommand)]
pub(super) enum Keys {
    /// Make a key file with one fresh key
    New {
        /// Where to write it; it must not exist yet
        #[arg(long, value_name = "PATH")]
        file: PathBuf,
    },
    /// Put a fresh key in front: it seals from the next start on, the others still open
    Rotate {
        /// The key file
        #[arg(long, value_name = "PATH")]
        file: PathBuf,
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
            Self::Rotate { file } => {
                let id = rotate_key_file(&file, &SystemRandom, now)?;
                say(format!(
                    "the key {id} seals from the next start on; keep the older keys until what they sealed has ended"
                ))?;
            }
        }
        Ok(())
    }
}
