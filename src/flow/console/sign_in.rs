//! Operators come in: by their key, or by a sign-in whose ID token says that they are one. A session of their own remembers it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Operator, OperatorDoor, Role};
use crate::domain::binding::sha256;
use crate::domain::ids::hex;
use crate::domain::{OperatorId, Timestamp};
use crate::flow::departure::Known;
use crate::flow::form::FormProof;
use crate::flow::page::Page;
use crate::flow::session::{IDLE, LONGEST, NOTED_EVERY};
use crate::flow::sign_in::{Back, Begun};
use crate::flow::visit::Visit;
use crate::flow::{Error, Gate};
use crate::identity::{Browser, Reason, Returned, SessionId, SignInError, SignedIn, Way};

/// The cookie with the name of an operator's session.
pub const COOKIE: &str = "__Host-sidegate-console";

/// An operator at a browser.
#[derive(Debug, Clone)]
pub struct Attendant {
    /// Who it is.
    pub operator: Operator,
    /// What to call them.
    pub name: String,
    session: SessionId,
}

/// How an operator came in.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum By {
    /// With the key of this digest.
    Key(#[serde(with = "hex")] [u8; 32]),
    /// At the source of this name, which said so.
    Source(String, Operator),
}

/// An operator's session.
#[derive(Serialize, Deserialize)]
struct Session {
    by: By,
    name: String,
    since: Timestamp,
    used: Timestamp,
}

impl Visit for Session {
    const KIND: &'static str = "operator";
}

impl OperatorDoor {
    /// What somebody who signed in may do; nothing if they are no operator.
    fn role(&self, signed_in: &SignedIn) -> Option<Role> {
        let said: Vec<&str> = match signed_in.claims.get(&self.claim) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let among = |accepted: &[String]| accepted.iter().any(|one| said.contains(&one.as_str()));
        if among(&self.revokers) { Some(Role::Revoker) } else { among(&self.viewers).then_some(Role::Viewer) }
    }
}

impl Gate {
    /// The operator at this browser.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn attendant(&self, browser: &Browser<'_>) -> Result<Option<Attendant>, Error> {
        let Some(cookie) = (browser.cookie)(COOKIE) else { return Ok(None) };
        let Some(mut session) = self.recall::<Session>(&cookie).await? else { return Ok(None) };
        let now = self.now();
        let left = now.until(session.since + LONGEST);
        // Whose key was taken away is no operator any more, and who has another role by now has that.
        let operator = match &session.by {
            By::Key(digest) => self.console.keys.get(digest).cloned(),
            By::Source(name, operator) => {
                let door = self.console.door.as_ref();
                door.filter(|door| door.source == *name).map(|_| operator.clone())
            }
        };
        let Some(operator) = operator.filter(|_| !left.is_zero()) else { return Ok(None) };
        if session.used + NOTED_EVERY <= now {
            session.used = now;
            self.renew(&cookie, &session, IDLE.min(left)).await?;
        }
        Ok(Some(Attendant { operator, name: session.name, session: SessionId(sha256(cookie.as_bytes())) }))
    }

    /// Begins the session of an operator whose key, of this digest, was verified. Returns its cookie: name and value.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it is no operator's, [`Error::Unavailable`].
    pub async fn begin_attendance_by_key(
        &self,
        digest: [u8; 32],
        browser: &Browser<'_>,
    ) -> Result<(String, String), Error> {
        let operator = self.console.keys.get(&digest).ok_or(Error::NotFound)?;
        self.begin_attendance(By::Key(digest), operator.id.to_string(), browser).await
    }

    async fn begin_attendance(
        &self,
        by: By,
        name: String,
        browser: &Browser<'_>,
    ) -> Result<(String, String), Error> {
        self.end_attendance(browser).await?;
        let now = self.now();
        let cookie = self.fresh_name();
        self.remember(&cookie, &Session { by, name, since: now, used: now }, IDLE).await?;
        Ok((COOKIE.to_owned(), cookie))
    }

    /// Ends the session that this browser has, if there is one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn end_attendance(&self, browser: &Browser<'_>) -> Result<(), Error> {
        if let Some(cookie) = (browser.cookie)(COOKIE) {
            self.take::<Session>(&cookie).await?;
        }
        Ok(())
    }

    /// A proof for a form of a console's page; `place` is what the form is about.
    #[must_use]
    pub fn console_proof(&self, attendant: Option<&Attendant>, place: &str) -> FormProof {
        self.proof_for(&bytes(place), attendant.map(|attendant| attendant.session))
    }

    /// Checks such a proof.
    ///
    /// # Errors
    /// [`Error::FormRefused`].
    pub fn check_console_form(
        &self,
        attendant: Option<&Attendant>,
        place: &str,
        proof: Option<&FormProof>,
        same_origin: bool,
    ) -> Result<(), Error> {
        let sessions = [attendant.map(|attendant| attendant.session)];
        let holds = self.proof_holds(&bytes(place), &sessions, proof, same_origin);
        if holds { Ok(()) } else { Err(Error::FormRefused) }
    }

    /// An operator without a key asks to sign in, on a page of ours. `again`: as somebody else than the last time.
    ///
    /// # Errors
    /// [`Error::NotFound`] if that is not configured, [`Error::Unavailable`].
    pub async fn begin_operator_sign_in(&self, browser: &Browser<'_>, again: bool) -> Result<Begun, Error> {
        let door = self.console.door.as_ref().ok_or(Error::NotFound)?;
        let name = self.fresh_name();
        match self.destination(&door.source, door.identity.way(), &name, again).await {
            Ok(Some((to, errand))) => {
                let browser = self.depart(&name, Page::Console, errand, to, browser).await?;
                Ok(Begun::Leaves { departure: name, browser })
            }
            Ok(None) => Err(Error::NotFound),
            Err(error) => {
                self.note_stray(error.reason()).await?;
                Ok(Begun::Failed(error))
            }
        }
    }

    /// Whoever asked to sign in as an operator is back from the source.
    pub(in crate::flow) async fn finish_operator_sign_in(
        &self,
        known: &Known,
        state: &str,
        returned: Returned<'_>,
        browser: &Browser<'_>,
    ) -> Result<Option<Back>, Error> {
        let Some(door) = &self.console.door else { return Ok(None) };
        let who = match (self.come_back(known, state, browser).await?, door.identity.way()) {
            (Ok(ties), Way::SignIn(source)) => source.finish(returned, &ties).await,
            (Ok(_), _) => Err(SignInError::Refused(Reason::SignInUnknown)),
            (Err(error), _) => Err(error),
        };
        let who = who.and_then(|signed_in| match door.role(&signed_in) {
            Some(role) => Ok((role, signed_in)),
            None => Err(SignInError::Refused(Reason::NoOperator)),
        });
        let session = match who {
            Ok((role, SignedIn { subject, name, .. })) => {
                // Names of operators with keys have no colon.
                let id = OperatorId::new(format!("{}:{}", door.source, subject.id));
                let by = By::Source(door.source.clone(), Operator { id, role });
                Ok(self.begin_attendance(by, name, browser).await?)
            }
            Err(error) if error.reason() == Reason::NoOperator => {
                self.note_visitor(error.reason()).await?;
                Err(error)
            }
            Err(error) => {
                self.note_stray(error.reason()).await?;
                Err(error)
            }
        };
        Ok(Some(Back { page: Page::Console, session }))
    }
}

fn bytes(place: &str) -> Vec<u8> {
    format!("console {place}").into_bytes()
}
