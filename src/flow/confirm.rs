//! The code that the finished page showed comes back through the MCP client (identity source `confirm`).

use super::step::{Change, Decision, Needs};
use super::{Client, Error, Gate};
use crate::domain::{Actor, Code, Confirmation, ElicitationId};

/// What came of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// It is right, or one was before: the elicitation is completed.
    Right,
    /// It is wrong; so many more may be tried.
    Wrong(u8),
    /// It is wrong, and the outcome is destroyed.
    Destroyed,
}

impl Gate {
    /// Takes the code that somebody entered for elicitation `id`.
    ///
    /// # Errors
    /// [`Error::NotFound`] also for another client's; [`Error::Refused`] with `NotCompleted` while the person is not done,
    /// or `Ended`; [`Error::Unavailable`].
    pub async fn confirm(&self, client: &Client, id: ElicitationId, code: &Code) -> Result<Confirmed, Error> {
        let confirmed = self.step(id, Actor::Client(client.id.clone()), Needs::Record, |found| {
            if found.elicitation.terms().client != client.id {
                return Err(Error::NotFound);
            }
            Ok(match found.elicitation.confirm(code, found.now, &self.spans)? {
                Confirmation::Before => Decision::Stay(Confirmed::Right),
                Confirmation::Right(elicitation) => {
                    Decision::change(Change::from(elicitation), Confirmed::Right)
                }
                Confirmation::Wrong { elicitation, tries_left } => {
                    Decision::change(Change::from(elicitation), Confirmed::Wrong(tries_left))
                }
                Confirmation::Destroyed(elicitation) => {
                    Decision::change(Change::from(elicitation), Confirmed::Destroyed)
                }
            })
        });
        let confirmed = confirmed.await?;
        if confirmed == Confirmed::Right {
            self.ensure_kept(id).await?;
        }
        Ok(confirmed)
    }
}
