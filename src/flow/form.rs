//! The proof that a form is ours: it comes from our own page, rendered for this session and this elicitation.

use super::open::Guest;
use super::{Error, Gate};
use crate::domain::{Actor, Elicitation, ElicitationId};
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

impl Gate {
    /// A proof for a page that is about to be rendered for `guest`.
    #[must_use]
    pub fn form_proof(&self, guest: &Guest) -> FormProof {
        self.proof(guest.id(), Some(guest.person().session))
    }

    /// A proof for a page of elicitation `id`, for whoever has this session, or none.
    pub(super) fn proof(&self, id: ElicitationId, session: Option<SessionId>) -> FormProof {
        let render = self.ring.fresh_render();
        let token = self.ring.page_token(&session.map_or(NOBODY, |session| session.0), id, &render);
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
        self.check_proof(guest.elicitation(), &[Some(guest.person().session)], proof, same_origin).await
    }

    /// The same, for a page that may have been made for any of these sessions.
    pub(super) async fn check_proof(
        &self,
        elicitation: &Elicitation,
        sessions: &[Option<SessionId>],
        proof: Option<&FormProof>,
        same_origin: bool,
    ) -> Result<(), Error> {
        let id = elicitation.id();
        let holds = |proof: &FormProof| {
            sessions.iter().any(|session| {
                let session = session.map_or(NOBODY, |session| session.0);
                self.ring.page_token_holds(&proof.token, &session, id, &proof.render)
            })
        };
        if same_origin && proof.is_some_and(holds) {
            return Ok(());
        }
        self.note_refusal(elicitation, Actor::Visitor, "form_refused").await?;
        Err(Error::FormRefused)
    }
}
