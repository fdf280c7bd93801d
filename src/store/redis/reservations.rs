//! Slots and quotas: they lie elsewhere than the records that have them, so no script reaches both. A commit reserves
//! them first, then changes its record, which says from then on what it has, and at last gives up what the record no
//! longer has. Wherever that breaks off, the record is right: a slot that leads to a record that does not say so is free, and
//! a quota forgets whoever does not say so.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use redis::cmd;

use super::Redis;
use super::keys::{quota_field, slot_field};
use crate::domain::ElicitationId;
use crate::store::{Committed, Quota, Slot, Tag, Unavailable};

/// How long a reservation may precede its record: a commit that comes later is refused.
pub(super) const HOLDS: Duration = Duration::from_secs(5);
/// After how long whoever made a reservation without a record is taken to be gone. Longer than it holds by more than the
/// clocks of a Cluster's nodes differ.
const IN_FLIGHT: Duration = Duration::from_secs(10);
/// How often, and after what pauses, one looks whether another's reservation was completed.
const LOOKS: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// How many of those that a full quota counts are asked whether they still belong there.
const SAMPLE: usize = 32;

/// What a commit has reserved.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    taken: Vec<(Tag, Had)>,
    joined: Vec<(Tag, Had)>,
    since: Option<ServerTime>,
}

/// Milliseconds of the clock of the server that was asked.
type ServerTime = i64;

/// Whether the record may have had it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Had {
    Before,
    Not,
}

impl Reserved {
    /// The slots that the record is to have.
    pub(super) fn slots(&self) -> Vec<Tag> {
        self.taken.iter().map(|(tag, _)| *tag).collect()
    }

    /// When the first of it was reserved, if anything was.
    pub(super) const fn since(&self) -> Option<ServerTime> {
        self.since
    }

    fn began(&mut self, at: ServerTime) {
        self.since = Some(self.since.map_or(at, |since| since.min(at)));
    }
}

/// How long a record may have a slot, beyond the life of an elicitation: what is kept of a person stays for a year at most.
/// A slot is given up with its record; this is a broom.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// Whom a slot's value names.
pub(super) fn holder(value: &[u8]) -> Option<ElicitationId> {
    value.first_chunk::<16>().map(|id| ElicitationId::from_bytes(*id))
}

/// What came of an attempt at a slot.
enum Attempt {
    Taken(Had, ServerTime),
    Held(ElicitationId),
}

impl Redis {
    /// Takes the slots and joins the quotas, all or none; or says what the commit comes to without them.
    pub(super) async fn reserve(
        &self,
        id: ElicitationId,
        nonce: &[u8; 16],
        take: &[Slot],
        join: &[Quota],
    ) -> Result<Result<Reserved, Committed>, Unavailable> {
        let mut reserved = Reserved::default();
        if take.is_empty() && join.is_empty() {
            return Ok(Ok(reserved));
        }
        // One after the other, in the same order everywhere: two that want the same slots never have one each.
        let mut ordered: Vec<_> = take.iter().collect();
        ordered.sort_by_key(|slot| slot.tag.0);
        let mut refused = None;
        for slot in ordered {
            match self.take(id, nonce, slot).await? {
                Attempt::Taken(had, at) if reserved.taken.iter().all(|(tag, _)| *tag != slot.tag) => {
                    reserved.taken.push((slot.tag, had));
                    reserved.began(at);
                }
                Attempt::Held(other) if slot.required => {
                    refused = Some(Committed::Taken(other));
                    break;
                }
                Attempt::Taken(..) | Attempt::Held(_) => {}
            }
        }
        if refused.is_none() {
            let joins = try_join_all(join.iter().map(|quota| self.join(id, quota))).await?;
            for (quota, joined) in join.iter().zip(joins) {
                match joined {
                    Some((had, at)) => {
                        reserved.joined.push((quota.tag, had));
                        reserved.began(at);
                    }
                    None => refused = refused.or(Some(Committed::Full(quota.tag))),
                }
            }
        }
        let Some(refused) = refused else { return Ok(Ok(reserved)) };
        self.give_back(id, nonce, &reserved).await;
        Ok(Err(refused))
    }

    /// Undoes what [`Redis::reserve`] did, for a commit that did not take place.
    pub(super) async fn give_back(&self, id: ElicitationId, nonce: &[u8; 16], reserved: &Reserved) {
        let ours = [&id.as_bytes()[..], nonce].concat();
        let slots = reserved.taken.iter().filter(|(_, had)| *had == Had::Not);
        let slots = join_all(slots.map(|(tag, _)| self.release(*tag, &ours)));
        let quotas = reserved.joined.iter().filter(|(_, had)| *had == Had::Not);
        let quotas = join_all(quotas.map(|(tag, _)| self.leave(id, *tag)));
        for error in slots.await.into_iter().chain(quotas.await).filter_map(Result::err) {
            tracing::debug!(%error, "a reservation was not given back; it lapses by itself");
        }
    }

    /// Makes sure of slots that the record may have had before: a commit that failed may have given them up meanwhile.
    pub(super) async fn confirm(
        &self,
        id: ElicitationId,
        nonce: &[u8; 16],
        reserved: &Reserved,
    ) -> Result<(), Unavailable> {
        let again = reserved.taken.iter().filter(|(_, had)| *had == Had::Before);
        try_join_all(again.map(|(tag, _)| self.try_take(id, nonce, *tag, &[]))).await?;
        Ok(())
    }

    /// Gives up what a record no longer has. If that fails the record still says that it has it not.
    pub(super) async fn free(&self, id: ElicitationId, release: impl Iterator<Item = &Tag>, leave: &[Tag]) {
        let slots = join_all(release.map(|tag| self.release(*tag, id.as_bytes())));
        let quotas = join_all(leave.iter().map(|tag| self.leave(id, *tag)));
        for error in slots.await.into_iter().chain(quotas.await).filter_map(Result::err) {
            tracing::debug!(%error, "a slot or a quota was not given up; it lapses by itself");
        }
    }

    async fn release(&self, tag: Tag, beginning: &[u8]) -> Result<(), Unavailable> {
        let call = self.scripts.release.call().key(self.keys.slot(tag)).arg(beginning.to_vec());
        self.call::<i64>(&call).await.map(drop)
    }

    async fn leave(&self, id: ElicitationId, tag: Tag) -> Result<(), Unavailable> {
        self.run::<i64>(cmd("ZREM").arg(self.keys.quota(tag)).arg(id.as_bytes())).await.map(drop)
    }

    /// One try at a slot. `stale` is the value of one that leads nowhere.
    async fn try_take(
        &self,
        id: ElicitationId,
        nonce: &[u8; 16],
        tag: Tag,
        stale: &[u8],
    ) -> Result<Result<(Had, ServerTime), (Vec<u8>, Duration)>, Unavailable> {
        let call = self.scripts.reserve.call().key(self.keys.slot(tag));
        let call = call
            .arg(id.as_bytes().to_vec())
            .arg(nonce.to_vec())
            .number(self.kept() + LONGEST.as_millis())
            .arg(stale.to_vec());
        let (value, time): (Vec<u8>, i64) = self.call(&call).await?;
        Ok(match value.as_slice() {
            b"new" => Ok((Had::Not, time)),
            b"own" => Ok((Had::Before, time)),
            _ => Err((value, Duration::from_millis(u64::try_from(time).unwrap_or(0)))),
        })
    }

    async fn take(&self, id: ElicitationId, nonce: &[u8; 16], slot: &Slot) -> Result<Attempt, Unavailable> {
        let mut stale = Vec::new();
        let mut looks = LOOKS.iter();
        loop {
            let (value, age) = match self.try_take(id, nonce, slot.tag, &stale).await? {
                Ok((had, at)) => return Ok(Attempt::Taken(had, at)),
                Err(held) => held,
            };
            let Some(other) = holder(&value) else {
                stale = value;
                continue;
            };
            let look = self.look(other, Some(slot_field(slot.tag))).await?;
            if look.is_some_and(|look| look.has_field) {
                return Ok(Attempt::Held(other));
            }
            if age > IN_FLIGHT {
                stale = value;
                continue;
            }
            // Reserved a moment ago by a commit that is under way, or given up a moment ago by one.
            match looks.next() {
                Some(pause) if slot.required => tokio::time::sleep(Duration::from_millis(*pause)).await,
                _ => return Ok(Attempt::Held(other)),
            }
        }
    }

    async fn join(&self, id: ElicitationId, quota: &Quota) -> Result<Option<(Had, ServerTime)>, Unavailable> {
        if let Some(had) = self.try_join(id, quota).await? {
            return Ok(Some(had));
        }
        if self.forget_strays(quota.tag).await? { self.try_join(id, quota).await } else { Ok(None) }
    }

    async fn try_join(
        &self,
        id: ElicitationId,
        quota: &Quota,
    ) -> Result<Option<(Had, ServerTime)>, Unavailable> {
        let call = self.scripts.join.call().key(self.keys.quota(quota.tag));
        let call = call.arg(id.as_bytes().to_vec()).number(quota.limit).number(self.kept());
        let (joined, time): (i64, ServerTime) = self.call(&call).await?;
        Ok(match joined {
            1 => Some((Had::Not, time)),
            2 => Some((Had::Before, time)),
            _ => None,
        })
    }

    /// Asks some of those that a quota counts whether they still belong there, and drops those that do not. Returns
    /// whether there were any.
    async fn forget_strays(&self, tag: Tag) -> Result<bool, Unavailable> {
        let mut sample = cmd("ZRANDMEMBER");
        sample.arg(self.keys.quota(tag)).arg(SAMPLE).arg("WITHSCORES");
        let members: Vec<(Vec<u8>, f64)> = self.run(&sample).await?;
        let (now, _): (f64, f64) = self.run(&cmd("TIME")).await?;
        let old = members.into_iter().filter(|(_, joined)| now - joined > IN_FLIGHT.as_secs_f64());
        let dropped = try_join_all(old.filter_map(|(member, _)| holder(&member)).map(|other| async move {
            let look = self.look(other, Some(quota_field(tag))).await?;
            let stray = !look.is_some_and(|look| look.has_field);
            if stray {
                self.leave(other, tag).await?;
            }
            Ok::<_, Unavailable>(stray)
        }));
        Ok(dropped.await?.into_iter().any(|stray| stray))
    }
}
