//! What belongs to browsers' visits: a key each, which holds until when it counts and what is kept.

use std::time::Duration;

use redis::{Cmd, cmd};

use super::Redis;
use crate::domain::Timestamp;
use crate::store::Tag;

/// How much longer than it counts a visit's key lives.
const VISIT_BROOM: Duration = Duration::from_mins(1);

impl Redis {
    /// The command that keeps what belongs to a visit.
    pub(super) fn set_visit(&self, tag: Tag, sealed: &[u8], now: Timestamp, until: Timestamp) -> Cmd {
        let lives = (now.until(until) + VISIT_BROOM).as_millis();
        let value = [&until.millis().to_be_bytes()[..], sealed].concat();
        let mut command = cmd("SET");
        command.arg(self.keys.visit(tag)).arg(value).arg("PX").arg(u64::try_from(lives).unwrap_or(u64::MAX));
        command
    }
}

/// What a visit's key holds, if its time is not over.
pub(super) fn in_time(mut value: Vec<u8>, now: Timestamp) -> Option<Vec<u8>> {
    let (until, _) = value.split_first_chunk::<8>()?;
    (i64::from_be_bytes(*until) > now.millis()).then(|| value.split_off(8))
}
