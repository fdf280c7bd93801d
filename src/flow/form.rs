//! The proof that a form is ours: it comes from our own page, rendered for this session and this elicitation.

use super::open::Guest;
use super::{Error, Gate};
use crate::domain::Actor;

/// What a page puts into its forms, and what comes back with them.
#[derive(Debug, Clone)]
pub struct FormProof {
    /// Names one render of a page.
    pub render: String,
    /// Made for that render, the session and the elicitation.
    pub token: String,
}

impl Gate {
    /// A proof for a page that is about to be rendered for `guest`.
    #[must_use]
    pub fn form_proof(&self, guest: &Guest) -> FormProof {
        let render = self.ring.fresh_render();
        let token = self.ring.page_token(&guest.person().session.0, guest.id(), &render);
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
        let session = &guest.person().session.0;
        let ours = same_origin
            && proof.is_some_and(|proof| {
                self.ring.page_token_holds(&proof.token, session, guest.id(), &proof.render)
            });
        if ours {
            return Ok(());
        }
        self.note_refusal(guest.elicitation(), Actor::Visitor, "form_refused").await?;
        Err(Error::FormRefused)
    }
}
