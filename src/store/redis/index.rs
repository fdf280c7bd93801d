//! From the indexes to the records, which are the truth.

use futures_util::future::try_join_all;
use redis::cmd;

use super::keys::Shard;
use super::{Redis, Unavailable};
use crate::domain::ElicitationId;
use crate::store::{Store as _, Stored};

impl Redis {
    /// The next ids in their order, at most `limit`.
    pub(super) async fn ids(
        &self,
        after: Option<ElicitationId>,
        limit: usize,
    ) -> Result<Vec<ElicitationId>, Unavailable> {
        let mut ids = Vec::new();
        let first = after.map(Shard::of);
        for shard in Shard::all().filter(|shard| first.is_none_or(|first| *shard >= first)) {
            let from = match after {
                Some(after) if Some(shard) == first => [b"(", &after.as_bytes()[..]].concat(),
                _ => b"-".to_vec(),
            };
            let mut command = cmd("ZRANGE");
            command.arg(self.keys.ids(shard)).arg(from).arg("+").arg("BYLEX");
            command.arg("LIMIT").arg(0).arg(limit - ids.len());
            ids.extend(self.run::<Vec<[u8; 16]>>(&command).await?.into_iter().map(ElicitationId::from_bytes));
            if ids.len() >= limit {
                break;
            }
        }
        Ok(ids)
    }

    /// The records of these ids. An index that names what is not there is mended.
    pub(super) async fn stored(
        &self,
        ids: impl IntoIterator<Item = ElicitationId>,
    ) -> Result<Vec<Stored>, Unavailable> {
        let records = try_join_all(ids.into_iter().map(|id| async move {
            let found = self.load(id).await?;
            if found.is_none() {
                let shard = Shard::of(id);
                let call = self.scripts.repair.call().key(self.keys.record(id));
                let call = call.key(self.keys.due(shard)).key(self.keys.ids(shard));
                self.call::<i64>(&call.arg(id.as_bytes().to_vec())).await?;
            }
            Ok::<_, Unavailable>(found)
        }));
        Ok(records.await?.into_iter().flatten().collect())
    }
}
