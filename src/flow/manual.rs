//! The page that plays a payment processor's, for development: whoever has its address decides.

use super::form::FormProof;
use super::{Error, Gate};
use crate::upstream::payment::manual::{Manual, Order};

impl Gate {
    /// An order that can be paid on the page of a processor `manual`, and the proof for its forms.
    #[must_use]
    pub fn manual_order(&self, processor: &str, id: &str) -> Option<(Order, FormProof)> {
        let order = self.manual(processor)?.order(id)?;
        Some((order, self.proof_for(&place(processor, id), None)))
    }

    /// Somebody pays an order, or refuses to: where the browser goes.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::FormRefused`].
    pub fn decide_manually(
        &self,
        processor: &str,
        id: &str,
        proof: Option<&FormProof>,
        same_origin: bool,
        pays: bool,
    ) -> Result<String, Error> {
        let manual = self.manual(processor).ok_or(Error::NotFound)?;
        if !self.proof_holds(&place(processor, id), &[None], proof, same_origin) {
            return Err(Error::FormRefused);
        }
        manual.decide(id, pays).ok_or(Error::NotFound)
    }

    fn manual(&self, processor: &str) -> Option<&Manual> {
        self.payments.get(processor)?.processor.manual()
    }
}

/// What a token for the forms of the page is made for.
fn place(processor: &str, id: &str) -> Vec<u8> {
    format!("manual {processor} {id}").into_bytes()
}
