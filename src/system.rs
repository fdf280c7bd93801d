//! What only the operating system has: the time, randomness, and whether a crash leaves a core dump.

use std::time::SystemTime;

use aws_lc_rs::rand;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::domain::{Clock, Random, Timestamp};

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// The operating system's generator, through the cryptographic library.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        if rand::fill(bytes).is_err() {
            // Without randomness nothing here is safe, and there is nobody to ask again.
            std::process::abort();
        }
    }
}

/// Makes sure that no crash writes this process's memory to a file, and that no other process of the same user
/// reads it (R39).
///
/// # Errors
/// What the operating system says.
pub fn forbid_core_dumps() -> std::io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}
