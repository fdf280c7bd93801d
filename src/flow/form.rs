//! The proof that a form is ours: it comes from our own page, rendered for this session and this elicitation.

use super::open::Guest;
use super::page::{Page, Spot};
use super::{Error, Gate};
use crate::domain::Actor;
use crate::identity::SessionId;

/// What a page puts into its forms, and what comes back with them.
#[derive(Debug, Clone)]
pub struct FormProof {
    /// Names one render of a page.
    pub render: String,
    /// Made for that render, the session and the elicitation.
    pub token: String,
}

/// Stands for a browser in which nobody is signed in.
const NOBODY: [u8; 32] = [0; 32];
const REFUSED: &str = "form_refused";

impl Gate {
    /// A proof for a page that is about to be rendered for `guest`.
    #[must_use]
    pub fn form_proof(&self, guest: &Guest) -> FormProof {
        self.proof(&Page::Link(guest.id()), Some(guest.person().session))
    }

    /// A proof for a page, for a browser in which nobody is signed in.
    #[must_use]
    pub fn fresh_proof(&self, page: &Page) -> FormProof {
        self.proof(page, None)
    }

    /// A proof for a page, for whoever has this session, or none.
    pub(super) fn proof(&self, page: &Page, session: Option<SessionId>) -> FormProof {
        self.proof_for(&page.to_bytes(), session)
    }

    /// The same, for any place.
    pub(super) fn proof_for(&self, place: &[u8], session: Option<SessionId>) -> FormProof {
        let render = self.ring.fresh_render();
        let session = session.map_or(NOBODY, |session| session.0);
        let token = self.ring.page_token(&session, place, &render);
        FormProof { render, token }
    }

    /// Checks a form's proof; `same_origin` says whether the browser sent it from our own page.
    ///
    /// # Errors
    /// [`Error::FormRefused`], put on the audit trail.
    pub async fn check_form(
        &self,
        guest: &Guest,
        proof: Option<&FormProof>,
        same_origin: bool,
    ) -> Result<(), Error> {
        let held = self.proof_holds(
            &Page::Link(guest.id()).to_bytes(),
            &[Some(guest.person().session)],
            proof,
            same_origin,
        );
        if !held {
            self.note_refusal(guest.elicitation(), Actor::Visitor, REFUSED).await?;
            return Err(Error::FormRefused);
        }
        Ok(())
    }

    /// The same, for a page that may have been made for any of these sessions.
    pub(super) async fn check_proof(
        &self,
        spot: &Spot,
        sessions: &[Option<SessionId>],
        proof: Option<&FormProof>,
        same_origin: bool,
    ) -> Result<(), Error> {
        if self.proof_holds(&spot.page.to_bytes(), sessions, proof, same_origin) {
            return Ok(());
        }
        self.refuse_at(spot, Actor::Visitor, REFUSED).await?;
        Err(Error::FormRefused)
    }

    pub(super) fn proof_holds(
        &self,
        place: &[u8],
        sessions: &[Option<SessionId>],
        proof: Option<&FormProof>,
        same_origin: bool,
    ) -> bool {
        let holds = |proof: &FormProof| {
            sessions.iter().any(|session| {
                let session = session.map_or(NOBODY, |session| session.0);
                self.ring.page_token_holds(&proof.token, &session, place, &proof.render)
            })
        };
        same_origin && proof.is_some_and(holds)
    }
}
