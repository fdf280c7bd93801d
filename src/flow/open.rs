//! A link is opened: which client asks, who is at the browser, and is it the person it was made for?
//!
//! Until that is known nothing but the client leaves this file: [`Arrival`] carries the elicitation only for
//! the verified subject, as a [`Guest`]. Every page and every form begins here.

use std::sync::Arc;

use super::finish::finished_in;
use super::form::FormProof;
use super::page::Page;
use super::step::{Decision, Needs};
use super::{Client, Error, Gate};
use crate::domain::{Actor, Elicitation, ElicitationId, Refusal, Theirs};
use crate::identity::{Browser, Identified, Nobody, Person, Way};

/// Who came by a link.
pub enum Arrival {
    /// The person it was made for.
    Guest(Box<Guest>),
    /// Somebody else, verified.
    WrongPerson {
        /// Who asks.
        client: Arc<Client>,
        /// What the verified person is called.
        name: String,
        /// For a form to sign in as somebody else, where that is done from our page.
        sign_in: Option<FormProof>,
    },
    /// Nobody that the identity source could verify.
    Nobody {
        /// Who asks.
        client: Arc<Client>,
        /// For a form to sign in, where that is done from our page.
        sign_in: Option<FormProof>,
    },
}

/// The verified subject at the browser, with their elicitation. Made here only.
pub struct Guest {
    client: Arc<Client>,
    person: Person,
    elicitation: Theirs,
    finished_here: bool,
}

impl Guest {
    /// Who asks.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Who is signed in.
    #[must_use]
    pub const fn person(&self) -> &Person {
        &self.person
    }

    /// In whose name it acts: the person's, or of whoever has the link where nobody finds out who that is.
    pub(super) fn actor(&self) -> Actor {
        if self.is_unknown() { Actor::Visitor } else { Actor::Person }
    }

    /// Whether nobody finds out who this is.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self.client.identity.way(), Way::Code)
    }

    /// Whether it was this browser that answered, where nobody knows who that was.
    #[must_use]
    pub const fn finished_here(&self) -> bool {
        self.finished_here
    }

    /// Whether somebody else did.
    #[must_use]
    pub const fn is_too_late(&self) -> bool {
        self.elicitation().is_answered() && !self.finished_here
    }

    /// Whether the person signed in from our page, and can sign in as somebody else there.
    #[must_use]
    pub fn signed_in_here(&self) -> bool {
        self.client.identity.way().signs_in()
    }

    /// The elicitation, as it was when the person arrived.
    #[must_use]
    pub const fn elicitation(&self) -> &Elicitation {
        self.elicitation.elicitation()
    }

    /// The elicitation, with what only its person may do.
    #[must_use]
    pub const fn theirs(&self) -> &Theirs {
        &self.elicitation
    }

    pub(super) const fn id(&self) -> ElicitationId {
        self.elicitation().id()
    }

    /// The elicitation of a step, in this person's hands.
    pub(super) fn take(&self, elicitation: Elicitation) -> Result<Theirs, Refusal> {
        elicitation.opened_by(&self.person.subject)
    }
}

impl Gate {
    /// Finds out who came by the link of elicitation `id`. A wrong or refused person is put on the audit trail;
    /// the elicitation is untouched.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Unavailable`] also if the identity source cannot work now.
    pub async fn arrive(&self, id: ElicitationId, browser: &Browser<'_>) -> Result<Arrival, Error> {
        let (elicitation, client) = self.linked(id).await?;
        let from_here = client.identity.way().signs_in();
        let offer = |session| from_here.then(|| self.proof(&Page::Link(id), session));
        let person = match self.identify(&client, &elicitation, browser).await? {
            Identified::Person(person) => person,
            Identified::Nobody(nobody) => {
                if let Nobody::Refused(reason) = nobody {
                    self.note_refusal(&elicitation, Actor::Visitor, reason.code()).await?;
                }
                return Ok(Arrival::Nobody { client, sign_in: offer(None) });
            }
            Identified::Unavailable => {
                return Err(Error::Unavailable("an identity source cannot verify anybody now".to_owned()));
            }
        };
        match elicitation.clone().opened_by(&person.subject) {
            Ok(elicitation) => {
                let finished_here = finished_in(elicitation.elicitation(), browser);
                Ok(Arrival::Guest(Box::new(Guest { client, person, elicitation, finished_here })))
            }
            Err(refusal) => {
                self.note_refusal(&elicitation, Actor::Visitor, refusal.code()).await?;
                let sign_in = offer(Some(person.session));
                Ok(Arrival::WrongPerson { client, name: person.name, sign_in })
            }
        }
    }

    async fn identify(
        &self,
        client: &Client,
        elicitation: &Elicitation,
        browser: &Browser<'_>,
    ) -> Result<Identified, Error> {
        let known = self.identify_by_source(client, browser).await?;
        let with_link = || Identified::Person(Person::with_the_link(&elicitation.terms().subject));
        Ok(known.unwrap_or_else(with_link))
    }

    /// Whom the client's source finds at the browser; `None` where it never finds out.
    pub(super) async fn identify_by_source(
        &self,
        client: &Client,
        browser: &Browser<'_>,
    ) -> Result<Option<Identified>, Error> {
        Ok(match client.identity.way() {
            Way::EachRequest(source) => Some(source.identify(browser).await),
            Way::SignIn(_) | Way::Handoff(_) => Some(match self.signed_in(client, browser).await? {
                Some(person) => Identified::Person(person),
                None => Identified::Nobody(Nobody::Absent),
            }),
            Way::Code => None,
        })
    }

    /// Notes that the person sees the page. Only the first time changes anything.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`].
    pub async fn note_opened(&self, guest: &Guest) -> Result<(), Error> {
        // Anybody may have been the one who looked.
        if guest.is_unknown()
            || guest.elicitation().opened_at().is_some()
            || !guest.elicitation().state().name().is_live()
        {
            return Ok(());
        }
        self.step(guest.id(), guest.actor(), Needs::Record, |found| {
            let before = found.elicitation.opened_at();
            let opened = guest.take(found.elicitation)?.open(found.now).into_inner();
            if opened.opened_at() == before {
                return Ok(Decision::Stay(()));
            }
            Ok(Decision::change(opened, ()))
        })
        .await
    }
}
