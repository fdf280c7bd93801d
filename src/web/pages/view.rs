//! The pages as data: what a template shows, and how it is made from an elicitation. Pure; no request is known
//! here.

use std::time::Duration;

use askama::Template;
use url::Url;

use super::text::{CodeText, Done, Filled, Leave, Notice, NoticeText, Phrase, Secret, Text};
use crate::domain::kept::{Again, Keep};
use crate::domain::secret::{Field, FieldError, Format, Problem, SecretRequest};
use crate::domain::{Code, Elicitation, Request, State, Timestamp};
use crate::flow::Client;
use crate::flow::departure::{Leaving, Purpose};
use crate::flow::form::FormProof;

/// What surrounds every page.
pub(in crate::web) struct Frame<'a> {
    pub(in crate::web) text: &'a Text,
    /// Path of the stylesheet.
    pub(in crate::web) style: &'a str,
    /// Path of the script.
    pub(in crate::web) script: &'a str,
}

/// What every page of a link shows of the elicitation, and what its forms need.
pub(super) struct Asked<'a> {
    pub(super) words: &'a Secret,
    /// Path of the elicitation's page.
    pub(super) page: String,
    pub(super) client: &'a str,
    pub(super) host: Option<&'a str>,
    pub(super) message: &'a str,
    pub(super) summary: &'a str,
    /// Empty where nobody knows who it is.
    pub(super) person: &'a str,
    /// The host of the issuer that says so.
    pub(super) person_host: Option<String>,
    pub(super) can_switch: bool,
    pub(super) time: TimeLeft,
    pub(super) can_extend: bool,
    pub(super) proof: FormProof,
    /// That what is given is kept, if it is.
    pub(super) kept: Option<String>,
}

/// The form of a secret.
#[derive(Template)]
#[template(path = "secret.html")]
pub(super) struct SecretPage<'a> {
    frame: Frame<'a>,
    words: &'a Secret,
    title: String,
    asked: Asked<'a>,
    /// Why it is asked for again.
    why: Option<String>,
    fields: Vec<FieldView<'a>>,
    errors: Vec<ErrorView>,
}

/// What a page of a link is made of, besides the elicitation.
pub(super) struct AskedParts<'a> {
    pub(super) page: String,
    pub(super) client: &'a Client,
    /// Empty where nobody knows who it is.
    pub(super) person: &'a str,
    /// Whether the person can sign in as somebody else from here.
    pub(super) can_switch: bool,
    pub(super) proof: FormProof,
    pub(super) can_extend: bool,
    pub(super) now: Timestamp,
    /// Where people see what is kept for them.
    pub(super) mine: String,
}

/// What was entered before.
pub(super) struct Entered<'a> {
    pub(super) errors: &'a [FieldError],
    /// By the field's name. Asked only for what may be sent back.
    pub(super) value: &'a dyn Fn(&str) -> Option<&'a str>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(text: &'a Text, elicitation: &'a Elicitation, parts: AskedParts<'a>) -> Self {
        let terms = elicitation.terms();
        let AskedParts { page, client, person, can_switch, proof, can_extend, now, mine } = parts;
        let kept = |keep: &Keep| {
            // Whom nobody knows has no page of their own.
            let words = if person.is_empty() { &text.again.kept_unknown } else { &text.again.kept };
            words.with("client", &client.name).with("days", keep.days).with("url", &mine).to_string()
        };
        Self {
            words: &text.secret,
            page,
            client: &client.name,
            host: client.host.as_deref(),
            message: &terms.message,
            summary: &terms.operation.summary,
            person,
            person_host: Url::parse(&terms.subject.issuer)
                .ok()
                .and_then(|url| Some(url.host_str()?.to_owned())),
            can_switch,
            time: TimeLeft::new(text, now, elicitation.expires_at()),
            can_extend,
            proof,
            kept: terms.keep.as_ref().map(kept),
        }
    }
}

/// Why something is asked for that was given before.
pub(super) fn why(text: &Text, elicitation: &Elicitation, client: &str) -> Option<String> {
    let words = &text.again;
    Some(match elicitation.terms().again.as_ref()? {
        Again::Discarded(None) => words.discarded.with("client", client).to_string(),
        Again::Discarded(Some(said)) => {
            words.discarded_words.with("client", client).with("words", said).to_string()
        }
        Again::Lapsed => words.lapsed.to_string(),
        Again::More { account: None, .. } => words.more.to_string(),
        Again::More { account: Some(account), .. } => words.more_account.with("account", account).to_string(),
    })
}

struct FieldView<'a> {
    name: &'a str,
    label: &'a str,
    help: Option<&'a str>,
    error: Option<String>,
    /// The ids of what describes the input.
    described: Option<String>,
    multiline: bool,
    password: bool,
    required: bool,
    value: &'a str,
}

struct ErrorView {
    field: String,
    sentence: String,
}

pub(super) struct TimeLeft {
    pub(super) seconds: u64,
    pub(super) left: Filled,
    /// RFC 3339.
    pub(super) machine: String,
    /// Hours and minutes, UTC.
    pub(super) clock: String,
}

impl<'a> SecretPage<'a> {
    pub(super) fn new(
        frame: Frame<'a>,
        elicitation: &'a Elicitation,
        request: &'a SecretRequest,
        asked: Asked<'a>,
        entered: &Entered<'a>,
    ) -> Self {
        let text = frame.text;
        let sentence = |field: &Field| {
            let error = entered.errors.iter().find(|error| error.field == field.name)?;
            Some(sentence(text, &field.label, error.problem))
        };
        let fields: Vec<_> = request
            .fields()
            .iter()
            .map(|field| FieldView::new(field, sentence(field), entered.value))
            .collect();
        let errors: Vec<_> = fields
            .iter()
            .filter_map(|field| {
                Some(ErrorView { field: field.name.to_owned(), sentence: field.error.clone()? })
            })
            .collect();
        let title = text.secret.title.with("client", asked.client);
        let title = if errors.is_empty() { title } else { text.secret.error_title.with("title", title) };
        Self {
            words: &text.secret,
            title: title.to_string(),
            why: why(text, elicitation, asked.client),
            asked,
            fields,
            errors,
            frame,
        }
    }
}

impl<'a> FieldView<'a> {
    fn new(field: &'a Field, error: Option<String>, entered: &'a dyn Fn(&str) -> Option<&'a str>) -> Self {
        let password = field.format == Format::Password;
        let help = field.help.as_ref().map(|_| format!("help-{}", field.name));
        let wrong = error.as_ref().map(|_| format!("error-{}", field.name));
        let described: Vec<_> = help.into_iter().chain(wrong).collect();
        Self {
            name: &field.name,
            label: &field.label,
            help: field.help.as_deref(),
            error,
            described: (!described.is_empty()).then(|| described.join(" ")),
            multiline: field.format == Format::Multiline,
            password,
            required: field.required,
            // What was hidden while it was typed never goes back to the browser.
            value: if password { "" } else { entered(&field.name).unwrap_or_default() },
        }
    }
}

fn sentence(text: &Text, label: &str, problem: Problem) -> String {
    let errors = &text.errors;
    let counted = |phrase: &Phrase, count: usize| phrase.with("count", count).with("label", label);
    match problem {
        Problem::Missing => errors.missing.with("label", label),
        Problem::TooShort(count) => counted(&errors.too_short, count),
        Problem::TooLong(count) => counted(&errors.too_long, count),
        Problem::ControlCharacter => errors.control.with("label", label),
        Problem::Pattern => errors.pattern.with("label", label),
    }
    .to_string()
}

impl TimeLeft {
    fn new(text: &Text, now: Timestamp, deadline: Timestamp) -> Self {
        let left = now.until(deadline);
        let machine = deadline.to_string();
        Self {
            seconds: left.as_secs(),
            left: spell(text, left),
            clock: machine.chars().skip(11).take(5).collect(),
            machine,
        }
    }
}

/// A span as people say it, rounded up.
fn spell(text: &Text, span: Duration) -> Filled {
    let minutes = span.as_secs().div_ceil(60);
    match (span.as_secs(), minutes) {
        (0..50, _) => text.time.seconds.with("count", 0),
        (_, 1) => text.time.minute.with("count", 1),
        (_, 2..120) => text.time.minutes.with("count", minutes),
        _ => text.time.hours.with("count", minutes.div_ceil(60)),
    }
}

/// The person is done.
#[derive(Template)]
#[template(path = "done.html")]
pub(super) struct DonePage<'a> {
    frame: Frame<'a>,
    words: &'a Done,
    client: &'a str,
    /// Where what the person gave is now.
    said: &'a Phrase,
    /// What was paid.
    paid: Option<String>,
    /// What the provider calls the account.
    account: Option<&'a str>,
    /// Labels of the fields from which white space was removed.
    trimmed: Vec<&'a str>,
}

impl<'a> DonePage<'a> {
    pub(super) fn new(frame: Frame<'a>, elicitation: &'a Elicitation, client: &'a Client) -> Self {
        let fields = match &elicitation.terms().request {
            Request::Secret(request) => request.fields(),
            Request::OAuth(_) | Request::Payment(_) => &[],
        };
        let words = &frame.text.done;
        let said = match (&elicitation.terms().request, elicitation.state()) {
            (Request::Secret(_), State::Claimed { .. }) => &words.collected,
            (Request::Secret(_), _) => &words.waiting,
            (Request::OAuth(_), State::Claimed { .. }) => &words.authorized_collected,
            (Request::OAuth(_), _) => &words.authorized_waiting,
            (Request::Payment(_), State::Claimed { .. }) => &words.paid_collected,
            (Request::Payment(_), _) => &words.paid_waiting,
        };
        let paid = match &elicitation.terms().request {
            Request::Payment(request) => Some(words.paid.with("amount", request.money).to_string()),
            Request::Secret(_) | Request::OAuth(_) => None,
        };
        let label =
            |name: &String| fields.iter().find(|field| field.name == *name).map(|field| field.label.as_str());
        Self {
            words,
            paid,
            client: &client.name,
            said,
            account: elicitation.account(),
            trimmed: elicitation.trimmed().iter().filter_map(label).collect(),
            frame,
        }
    }
}

/// The person is done; a code must go back.
#[derive(Template)]
#[template(path = "code.html")]
pub(super) struct CodePage<'a> {
    frame: Frame<'a>,
    words: &'a CodeText,
    client: &'a str,
    code: String,
    seconds: u64,
    left: Filled,
}

impl<'a> CodePage<'a> {
    pub(super) fn new(frame: Frame<'a>, code: &Code, left: Duration, client: &'a Client) -> Self {
        Self {
            words: &frame.text.code,
            client: &client.name,
            code: code.shown(),
            seconds: left.as_secs(),
            left: spell(frame.text, left),
            frame,
        }
    }
}

/// A button to sign in.
pub(super) struct SignInForm {
    /// Path of the elicitation's page.
    pub(super) page: String,
    pub(super) proof: FormProof,
    /// Whether it is to be as somebody else.
    pub(super) again: bool,
}

/// A page that says one thing.
#[derive(Template)]
#[template(path = "notice.html")]
pub(super) struct NoticePage<'a> {
    frame: Frame<'a>,
    words: &'a NoticeText,
    client: &'a str,
    person: &'a str,
    sign_in: Option<SignInForm>,
}

impl<'a> NoticePage<'a> {
    /// `None` only if the language has no such notice, which its reader rules out.
    pub(super) fn new(
        frame: Frame<'a>,
        notice: Notice,
        client: &'a str,
        person: &'a str,
        sign_in: Option<SignInForm>,
    ) -> Option<Self> {
        Some(Self { words: frame.text.notices.get(&notice)?, client, person, sign_in, frame })
    }
}

/// The page on the way to where the person signs in.
#[derive(Template)]
#[template(path = "leave.html")]
pub(super) struct LeavePage<'a> {
    frame: Frame<'a>,
    words: &'a Leave,
    to: &'a str,
    host: String,
    body: &'a Phrase,
    /// Path of the elicitation's page.
    page: String,
}

impl<'a> LeavePage<'a> {
    pub(super) fn new(frame: Frame<'a>, leaving: &'a Leaving, page: String) -> Self {
        let to = leaving.to.as_str();
        let host = Url::parse(to).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default();
        let words = &frame.text.leave;
        let body = match leaving.purpose {
            Purpose::SignIn => &words.body,
            Purpose::Authorize => &words.authorizes,
            Purpose::Pay => &words.pays,
        };
        Self { frame, words, to, host, body, page }
    }
}
