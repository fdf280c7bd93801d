//! Every word that people read, from one file per language.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// The words of one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    pub(in crate::web) lang: String,
    pub(in crate::web) layout: Layout,
    pub(super) secret: Secret,
    pub(super) authorize: Authorize,
    pub(super) pay: Pay,
    pub(super) manual: Manual,
    pub(super) again: Again,
    pub(super) mine: Mine,
    pub(super) errors: Errors,
    pub(super) time: Time,
    pub(super) done: Done,
    pub(super) code: CodeText,
    pub(super) sign_in: SignIn,
    pub(super) leave: Leave,
    pub(super) notices: BTreeMap<Notice, NoticeText>,
    /// What scopes allow, in plain words, by preset and scope: a file of its own.
    #[serde(skip)]
    pub(super) scopes: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::web) struct Layout {
    pub(in crate::web) brand: Phrase,
    pub(in crate::web) footer: Phrase,
    pub(super) supplied: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Secret {
    pub(super) title: Phrase,
    pub(super) error_title: Phrase,
    pub(super) heading: Phrase,
    pub(super) host: Phrase,
    pub(super) purpose: Phrase,
    pub(super) receiver: Phrase,
    pub(super) person: Phrase,
    pub(super) not_you: Phrase,
    pub(super) not_you_help: Phrase,
    pub(super) not_you_switch: Phrase,
    pub(super) anybody: Phrase,
    pub(super) anybody_help: Phrase,
    pub(super) at: Phrase,
    pub(super) time: Phrase,
    pub(super) until: Phrase,
    pub(super) more_time: Phrase,
    pub(super) time_up: Phrase,
    pub(super) optional: Phrase,
    pub(super) send: Phrase,
    pub(super) sending: Phrase,
    pub(super) decline: Phrase,
    pub(super) errors: Phrase,
    pub(super) happens_title: Phrase,
    pub(super) happens_sealed: Phrase,
    pub(super) happens_not: Phrase,
    pub(super) happens_kept: Phrase,
    pub(super) happens_never: Phrase,
    pub(super) happens_scope: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Authorize {
    pub(super) title: Phrase,
    pub(super) heading: Phrase,
    pub(super) error_title: Phrase,
    pub(super) scopes: Phrase,
    pub(super) more_scopes: Phrase,
    pub(super) account: Phrase,
    pub(super) go: Phrase,
    pub(super) leaving: Phrase,
    pub(super) happens_title: Phrase,
    pub(super) happens_there: Phrase,
    pub(super) happens_sealed: Phrase,
    pub(super) happens_not: Phrase,
    pub(super) happens_scope: Phrase,
    pub(super) unavailable: Phrase,
    pub(super) unauthorized: Phrase,
    pub(super) not_accepted: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pay {
    pub(super) title: Phrase,
    pub(super) heading: Phrase,
    pub(super) error_title: Phrase,
    pub(super) amount: Phrase,
    pub(super) test: Phrase,
    pub(super) description: Phrase,
    pub(super) payee: Phrase,
    pub(super) through: Phrase,
    pub(super) go: Phrase,
    pub(super) leaving: Phrase,
    pub(super) happens_title: Phrase,
    pub(super) happens_there: Phrase,
    pub(super) happens_told: Phrase,
    pub(super) happens_late: Phrase,
    pub(super) happens_held: Phrase,
    pub(super) happens_scope: Phrase,
    pub(super) unavailable: Phrase,
    pub(super) unknown: Phrase,
    pub(super) not_paid: Phrase,
    pub(super) unclear_title: Phrase,
    pub(super) unclear: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manual {
    pub(super) title: Phrase,
    pub(super) heading: Phrase,
    pub(super) body: Phrase,
    pub(super) amount: Phrase,
    pub(super) description: Phrase,
    pub(super) pay: Phrase,
    pub(super) refuse: Phrase,
}

/// What is said of something that is kept, or was.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Again {
    pub(super) discarded: Phrase,
    pub(super) discarded_words: Phrase,
    pub(super) lapsed: Phrase,
    pub(super) more: Phrase,
    pub(super) more_account: Phrase,
    pub(super) kept: Phrase,
    pub(super) kept_unknown: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mine {
    pub(super) heading: Phrase,
    pub(super) person: Phrase,
    pub(super) nothing: Phrase,
    pub(super) client: Phrase,
    pub(super) allows: Phrase,
    pub(super) since: Phrase,
    pub(super) until: Phrase,
    pub(super) used: Phrase,
    pub(super) never: Phrase,
    pub(super) delete: Phrase,
    pub(super) secret: Phrase,
    pub(super) doors: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Errors {
    pub(super) missing: Phrase,
    pub(super) too_short: Phrase,
    pub(super) too_long: Phrase,
    pub(super) control: Phrase,
    pub(super) pattern: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Time {
    pub(super) seconds: Phrase,
    pub(super) minute: Phrase,
    pub(super) minutes: Phrase,
    pub(super) hours: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Done {
    pub(super) title: Phrase,
    pub(super) heading: Phrase,
    pub(super) waiting: Phrase,
    pub(super) collected: Phrase,
    pub(super) account: Phrase,
    pub(super) authorized_waiting: Phrase,
    pub(super) authorized_collected: Phrase,
    pub(super) paid: Phrase,
    pub(super) paid_waiting: Phrase,
    pub(super) paid_collected: Phrase,
    pub(super) trimmed: Phrase,
    pub(super) back: Phrase,
    pub(super) close: Phrase,
    pub(super) close_failed: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CodeText {
    pub(super) heading: Phrase,
    pub(super) body: Phrase,
    pub(super) label: Phrase,
    pub(super) copy: Phrase,
    pub(super) copied: Phrase,
    pub(super) time: Phrase,
    pub(super) over: Phrase,
    pub(super) warning: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignIn {
    pub(super) button: Phrase,
    pub(super) switch: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Leave {
    pub(super) heading: Phrase,
    pub(super) body: Phrase,
    pub(super) authorizes: Phrase,
    pub(super) pays: Phrase,
    pub(super) go: Phrase,
    pub(super) back: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoticeText {
    pub(super) heading: Phrase,
    pub(super) body: Vec<Phrase>,
}

/// A page that says one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// An answer of a provider came back that nobody began here.
    AuthorizeStray,
    /// One came back for what has been answered.
    AuthorizeLate,
    /// What was paid is on its way.
    PaymentProcessing,
    /// What was paid too late is being paid back.
    PaymentRefunding,
    /// It has been paid back.
    PaymentRefunded,
    /// It waits for somebody to look into it.
    PaymentHeld,
    /// Somebody wants to see what is kept for them.
    MineSignIn,
    /// Nobody is signed in, at a source of its own kind.
    SignIn,
    /// Nobody is signed in, and the page has a button for it.
    SignInHere,
    /// Nobody is signed in any more, when a form comes.
    SignedOut,
    /// Somebody answered, and it was not this browser.
    AnsweredElsewhere,
    /// A sign-in was not accepted.
    SignInFailed,
    /// The person said no at the issuer.
    SignInDeclined,
    /// The issuer does not do its part.
    SignInUnavailable,
    /// A sign-in came back that was not begun in this browser.
    SignInStray,
    /// The browser is not on the computer that it must be on.
    SignInLoopback,
    /// Somebody else is signed in.
    WrongPerson,
    /// The person said no.
    Declined,
    /// The time has run out.
    Expired,
    /// The client called it off.
    Cancelled,
    /// An operator withdrew it.
    Revoked,
    /// A provider ended it.
    Failed,
    /// No such link.
    NotFound,
    /// A form that is not ours.
    FormRefused,
    /// All the time is given.
    NoMoreTime,
    /// What the browser sent makes no sense.
    BadRequest,
    /// More than is accepted.
    TooLarge,
    /// Slower than is accepted.
    TooSlow,
    /// More often than is accepted.
    TooMany,
    /// Another host was meant.
    Misdirected,
    /// It does not work right now.
    Unavailable,
}

impl Notice {
    /// Every notice there is.
    pub const ALL: [Self; 31] = [
        Self::PaymentProcessing,
        Self::PaymentRefunding,
        Self::PaymentRefunded,
        Self::PaymentHeld,
        Self::AuthorizeStray,
        Self::AuthorizeLate,
        Self::MineSignIn,
        Self::SignIn,
        Self::SignInHere,
        Self::SignedOut,
        Self::AnsweredElsewhere,
        Self::SignInFailed,
        Self::SignInDeclined,
        Self::SignInUnavailable,
        Self::SignInStray,
        Self::SignInLoopback,
        Self::WrongPerson,
        Self::Declined,
        Self::Expired,
        Self::Cancelled,
        Self::Revoked,
        Self::Failed,
        Self::NotFound,
        Self::FormRefused,
        Self::NoMoreTime,
        Self::BadRequest,
        Self::TooLarge,
        Self::TooSlow,
        Self::TooMany,
        Self::Misdirected,
        Self::Unavailable,
    ];
}

/// Words with places to fill: `{client}`, for example.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(in crate::web) struct Phrase(String);

impl Phrase {
    /// Puts `value` into the place `name`. What is put in is not looked at again.
    pub(super) fn with(&self, name: &str, value: impl fmt::Display) -> Filled {
        Filled(vec![Part::Open(self.0.clone())]).with(name, value)
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A phrase of which some places are filled.
#[derive(Debug, Clone)]
pub(super) struct Filled(Vec<Part>);

#[derive(Debug, Clone)]
enum Part {
    /// Our own words, perhaps with places.
    Open(String),
    /// What was put in.
    Put(String),
}

impl Filled {
    /// Puts `value` into the place `name`, wherever our own words have it.
    pub(super) fn with(&self, name: &str, value: impl fmt::Display) -> Self {
        let (place, value) = (format!("{{{name}}}"), value.to_string());
        let mut parts = Vec::new();
        for part in &self.0 {
            match part {
                Part::Put(_) => parts.push(part.clone()),
                Part::Open(words) => {
                    for (index, piece) in words.split(&place).enumerate() {
                        if index > 0 {
                            parts.push(Part::Put(value.clone()));
                        }
                        parts.push(Part::Open(piece.to_owned()));
                    }
                }
            }
        }
        Self(parts)
    }
}

impl fmt::Display for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(Part::Open(text) | Part::Put(text))| f.write_str(text))
    }
}

/// The file of a language is not complete.
#[derive(Debug, thiserror::Error)]
#[error("the page texts are not complete: {0}")]
pub struct TextError(String);

impl Text {
    /// English.
    ///
    /// # Errors
    /// [`TextError`] if a key is missing or unknown.
    pub fn english() -> Result<Self, TextError> {
        let text = include_str!("../../../templates/text/en.toml");
        Self::parse(text, include_str!("../../../templates/text/scopes/en.toml"))
    }

    fn parse(file: &str, scopes: &str) -> Result<Self, TextError> {
        let mut text: Self = toml::from_str(file).map_err(|error| TextError(error.to_string()))?;
        text.scopes = toml::from_str(scopes).map_err(|error| TextError(error.to_string()))?;
        match Notice::ALL.iter().find(|notice| !text.notices.contains_key(notice)) {
            Some(missing) => Err(TextError(format!("there is no notice {missing:?}"))),
            None => Ok(text),
        }
    }
}
