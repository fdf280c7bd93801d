//! The person sees what is kept for them, and deletes it.

use std::sync::Arc;

use super::form::FormProof;
use super::keep::KeptDecision;
use super::page::{Door, Page};
use super::{Client, Error, Gate};
use crate::domain::kept::{Dropped, Kept};
use crate::domain::{Actor, GrantId};
use crate::identity::{Browser, Identified, Nobody, Person, Way};

/// Who came to see what is kept for them.
pub enum Visitor {
    /// A verified person, with all that is kept for them.
    Known(Box<Mine>),
    /// Nobody that the identity source could verify.
    Nobody {
        /// For a form to sign in, where that is done from our page.
        sign_in: Option<FormProof>,
        /// The word for the identity source.
        source: &'static str,
    },
}

/// What is kept for one person.
pub struct Mine {
    /// Who it is.
    pub person: Person,
    /// For which clients, and what.
    pub kept: Vec<(Arc<Client>, Kept)>,
    /// For the page's forms.
    pub proof: FormProof,
    /// Whether the person signed in from our page, and can sign in as somebody else there.
    pub can_switch: bool,
}

impl Gate {
    /// The doors by which people can come in who are known then, in their order.
    #[must_use]
    pub fn doors(&self) -> Vec<Door> {
        let known = self.clients.all().filter(|client| !matches!(client.identity.way(), Way::Code));
        let mut doors: Vec<_> = known.map(|client| Door::of(client)).collect();
        doors.sort();
        doors.dedup();
        doors
    }

    /// What is kept for whoever comes in by this door.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such door, [`Error::Unavailable`].
    pub async fn mine(&self, door: &Door, browser: &Browser<'_>) -> Result<Visitor, Error> {
        let page = Page::Mine(door.clone());
        let spot = self.spot(page.clone()).await?;
        let client = &spot.client;
        let from_here = client.identity.way().signs_in();
        let person = match self.identify_by_source(client, browser).await?.ok_or(Error::NotFound)? {
            Identified::Person(person) => person,
            Identified::Nobody(nobody) => {
                if let Nobody::Refused(reason) = nobody {
                    self.refuse_at(&spot, Actor::Visitor, reason.code()).await?;
                }
                let sign_in = from_here.then(|| self.proof(&page, None));
                return Ok(Visitor::Nobody { sign_in, source: client.identity.word() });
            }
            Identified::Unavailable => {
                return Err(Error::Unavailable("an identity source cannot verify anybody now".to_owned()));
            }
        };
        let mut kept = Vec::new();
        for client in self.clients_of(door) {
            if let Some((_, mut record)) = self.load_kept(&client.id, &person.subject).await? {
                // What time has ended is not shown.
                drop(record.kept.settle(self.now()));
                kept.push((Arc::clone(client), record.kept));
            }
        }
        kept.sort_by(|(one, _), (other, _)| one.id.cmp(&other.id));
        let proof = self.proof(&page, Some(person.session));
        Ok(Visitor::Known(Box::new(Mine { person, kept, proof, can_switch: from_here })))
    }

    /// The person deletes one thing that is kept for them. What is there no longer is no failure.
    ///
    /// # Errors
    /// [`Error::NotFound`] also if nobody is known any more, [`Error::FormRefused`], [`Error::Unavailable`].
    pub async fn delete_mine(
        &self,
        door: &Door,
        browser: &Browser<'_>,
        proof: Option<&FormProof>,
        same_origin: bool,
        grant: GrantId,
    ) -> Result<(), Error> {
        let Visitor::Known(mine) = self.mine(door, browser).await? else { return Err(Error::FormRefused) };
        let spot = self.spot(Page::Mine(door.clone())).await?;
        self.check_proof(&spot, &[Some(mine.person.session)], proof, same_origin).await?;
        for (client, kept) in &mine.kept {
            let Some((name, _)) = kept.slots().find(|(_, held)| held.id == grant) else { continue };
            self.change_kept(&client.id, &mine.person.subject, &Actor::Person, |kept, _| {
                if kept.slot(name).is_none_or(|held| held.id != grant) {
                    return Ok(KeptDecision::Stay(()));
                }
                Ok(KeptDecision::dropped(kept.drop_slot(name, Dropped::ByPerson)))
            })
            .await?;
        }
        Ok(())
    }
}
