//! The names of keys. What belongs to one elicitation shares a shard with it, and a shard is one hash tag, so that a
//! Cluster keeps it on one node and one script can change all of it at once.
//!
//! ```text
//! sidegate:{2a}:record:ID   hash    version, nonces, due, record, and a field for each slot and quota that it has
//! sidegate:{2a}:outcome:ID  string
//! sidegate:{2a}:due         sorted  ids by when they are due
//! sidegate:{2a}:ids         sorted  ids in their order
//! sidegate:{2a}:outbox      list    events on their way to the trail
//! sidegate:{2a}:clock       hash    the stamp of the last of them, and nonces
//! sidegate:slot:TAG         string  who has it
//! sidegate:quota:TAG        sorted  who is counted, by when they joined
//! sidegate:visit:TAG        string  until when it counts (8 bytes, milliseconds), and what is kept
//! sidegate:{trail}:end      hash    number and hash of the last entry; for each outbox, how far it was drained
//! sidegate:{trail}:N        list    what the chunk follows; then its entries
//! sidegate:sweeper          string  which instance sweeps
//! sidegate:keys             sorted  names of the keys that seal, by until when something sealed so may live
//! sidegate:{2a}:probe       any     tells whether the server lets us do what we do
//! sidegate:changes          channel ids of elicitations that changed
//! ```

use crate::domain::{ElicitationId, Tag};

/// How many shards there are. A shard is the first six bits of an id, so that the shards in their order hold the ids in
/// theirs.
pub(super) const SHARDS: u8 = 64;

/// One of the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shard(u8);

impl Shard {
    pub(super) fn of(id: ElicitationId) -> Self {
        let [first, ..] = id.as_bytes();
        Self(first >> 2)
    }

    /// The shard of this number, counted round and round.
    pub(super) const fn numbered(number: u8) -> Self {
        Self(number % SHARDS)
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS).map(Self)
    }

    /// Its name within the trail's end.
    pub(super) fn name(self) -> String {
        format!("{:02x}", self.0)
    }
}

/// The keys of one store.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) const fn new(prefix: String) -> Self {
        Self { prefix }
    }

    pub(super) fn record(&self, id: ElicitationId) -> String {
        self.of_id("record", id)
    }

    pub(super) fn outcome(&self, id: ElicitationId) -> String {
        self.of_id("outcome", id)
    }

    pub(super) fn due(&self, shard: Shard) -> String {
        self.of_shard("due", shard)
    }

    pub(super) fn ids(&self, shard: Shard) -> String {
        self.of_shard("ids", shard)
    }

    pub(super) fn outbox(&self, shard: Shard) -> String {
        self.of_shard("outbox", shard)
    }

    pub(super) fn clock(&self, shard: Shard) -> String {
        self.of_shard("clock", shard)
    }

    pub(super) fn slot(&self, tag: Tag) -> String {
        format!("{}:slot:{tag}", self.prefix)
    }

    pub(super) fn quota(&self, tag: Tag) -> String {
        format!("{}:quota:{tag}", self.prefix)
    }

    pub(super) fn visit(&self, tag: Tag) -> String {
        format!("{}:visit:{tag}", self.prefix)
    }

    pub(super) fn trail_end(&self) -> String {
        format!("{}:{{trail}}:end", self.prefix)
    }

    pub(super) fn trail_chunk(&self, number: u64) -> String {
        format!("{}:{{trail}}:{number}", self.prefix)
    }

    pub(super) fn sweeper(&self) -> String {
        format!("{}:sweeper", self.prefix)
    }

    pub(super) fn sealing_keys(&self) -> String {
        format!("{}:keys", self.prefix)
    }

    pub(super) fn changes(&self) -> String {
        super::channel(&self.prefix)
    }

    pub(super) fn probe(&self, shard: Shard) -> String {
        self.of_shard("probe", shard)
    }

    fn of_id(&self, what: &str, id: ElicitationId) -> String {
        format!("{}:{{{:02x}}}:{what}:{id}", self.prefix, Shard::of(id).0)
    }

    fn of_shard(&self, what: &str, shard: Shard) -> String {
        format!("{}:{{{:02x}}}:{what}", self.prefix, shard.0)
    }
}

/// The field of a record that says that it has a slot.
pub(super) fn slot_field(tag: Tag) -> Vec<u8> {
    [b"s", &tag.0[..]].concat()
}

/// The field of a record that says that it is counted in a quota.
pub(super) fn quota_field(tag: Tag) -> Vec<u8> {
    [b"q", &tag.0[..]].concat()
}
