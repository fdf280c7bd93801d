//! What is remembered of a browser's visit: who signed in, and sign-ins that are under way. The browser, or whoever it is
//! sent to, carries only a name of 256 random bits; the store has the rest, sealed, under a keyed tag of that name.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Error, Gate};
use crate::domain::Tag;
use crate::vault::{Lookup, OpenError, Place};

/// Something that is remembered. Things of different kinds do not pass for each other.
pub(super) trait Visit: Serialize + DeserializeOwned {
    const KIND: &'static str;
}

/// Names are this long; nothing longer or shorter is looked for.
const NAME: usize = 43;

impl Gate {
    /// A name like no other.
    pub(super) fn fresh_name(&self) -> String {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Remembers something under a name, for a while.
    pub(super) async fn remember<V: Visit>(
        &self,
        name: &str,
        visit: &V,
        lasts: Duration,
    ) -> Result<(), Error> {
        let now = self.now();
        let tag = self.ring.tag(Lookup::Visit(V::KIND, name));
        let sealed = self.seal_visit(tag, visit)?;
        Ok(self.store.put_visit(tag, sealed, now, now + lasts).await?)
    }

    /// Remembers something in the place of what is remembered under a name, if there still is anything: what somebody
    /// takes at the same moment stays taken.
    pub(super) async fn renew<V: Visit>(&self, name: &str, visit: &V, lasts: Duration) -> Result<(), Error> {
        let now = self.now();
        for tag in self.visit_tags::<V>(name) {
            let sealed = self.seal_visit(tag, visit)?;
            self.store.renew_visit(tag, sealed, now, now + lasts).await?;
        }
        Ok(())
    }

    /// What is remembered under a name.
    pub(super) async fn recall<V: Visit>(&self, name: &str) -> Result<Option<V>, Error> {
        for tag in self.visit_tags::<V>(name) {
            if let Some(sealed) = self.store.visit(tag, self.now()).await? {
                return Ok(Some(self.open_visit(tag, &sealed)?));
            }
        }
        Ok(None)
    }

    /// The same, and it is forgotten: of many who ask at once one gets it. Nothing of it is left under any key of the ring.
    pub(super) async fn take<V: Visit>(&self, name: &str) -> Result<Option<V>, Error> {
        let mut taken = None;
        for tag in self.visit_tags::<V>(name) {
            if let Some(sealed) = self.store.take_visit(tag, self.now()).await? {
                taken = taken.or(Some(self.open_visit(tag, &sealed)?));
            }
        }
        Ok(taken)
    }

    fn visit_tags<'a, V: Visit>(&'a self, name: &'a str) -> impl Iterator<Item = Tag> + 'a {
        let known = (name.len() == NAME).then(|| self.ring.tags(Lookup::Visit(V::KIND, name)));
        known.into_iter().flatten()
    }

    fn seal_visit<V: Visit>(&self, tag: Tag, visit: &V) -> Result<Vec<u8>, Error> {
        let plain = serde_json::to_vec(visit).map_err(|_| OpenError::Broken)?;
        Ok(self.ring.seal(Place::Visit(V::KIND, tag), &plain)?)
    }

    fn open_visit<V: Visit>(&self, tag: Tag, sealed: &[u8]) -> Result<V, Error> {
        let plain = self.ring.open(Place::Visit(V::KIND, tag), sealed)?;
        serde_json::from_slice(&plain).map_err(|_| OpenError::Broken.into())
    }
}
