//! The console's pages as data: what a template shows.

use std::time::Duration;

use askama::Template;
use serde::Serialize;

use crate::domain::kept::Held;
use crate::domain::order::Why;
use crate::domain::{Actor, Elicitation, Event, Kind, Request, StateName, Timestamp};
use crate::flow::Gate;
use crate::flow::console::bulk::{Bulk, Stage};
use crate::flow::console::query::Query;
use crate::flow::form::FormProof;
use crate::flow::notices::Dead;
use crate::flow::search::Filter;
use crate::flow::withdraw::{KeptEntry, KeptFilter};
use crate::web::pages::view::Frame;

/// A moment as people read it in a table: the day and the second, UTC.
fn moment(text: &str) -> String {
    text.get(..19).unwrap_or(text).replace('T', " ")
}

/// What surrounds a page of the console.
pub(super) struct Shell<'a> {
    /// The path of the console.
    pub(super) base: String,
    /// What the operator is called.
    pub(super) name: &'a str,
    /// Whether they may revoke.
    pub(super) revokes: bool,
    /// For the form to sign out.
    pub(super) out: FormProof,
    /// For the page's own forms.
    pub(super) proof: FormProof,
}

/// The page to sign in.
#[derive(Template)]
#[template(path = "console/sign_in.html")]
pub(super) struct SignInPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) base: String,
    /// Where operators sign in who have no key.
    pub(super) source: Option<&'a str>,
    pub(super) proof: FormProof,
    pub(super) error: Option<&'a str>,
}

/// A page that says one thing.
#[derive(Template)]
#[template(path = "console/say.html")]
pub(super) struct SayPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) shell: Shell<'a>,
    pub(super) heading: &'a str,
    pub(super) body: &'a str,
}

/// The search, and the first links that are open.
#[derive(Template)]
#[template(path = "console/home.html")]
pub(super) struct HomePage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) shell: Shell<'a>,
    pub(super) search: Search,
    pub(super) rows: Vec<LinkRow>,
    pub(super) more: bool,
}

/// Links that were found.
#[derive(Template)]
#[template(path = "console/found.html")]
pub(super) struct FoundPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) shell: Shell<'a>,
    pub(super) search: Search,
    pub(super) rows: Vec<LinkRow>,
    pub(super) query: String,
    pub(super) next: Option<String>,
    /// Whether any of them can be revoked.
    pub(super) revocable: bool,
}

/// One link, with its story.
#[derive(Template)]
#[template(path = "console/link.html")]
pub(super) struct LinkPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) shell: Shell<'a>,
    pub(super) row: LinkRow,
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) steps: Vec<Step>,
    /// Whether all of the story is there.
    pub(super) is_whole: bool,
    pub(super) revocable: bool,
    pub(super) paid: bool,
}

/// What is kept.
#[derive(Template)]
#[template(path = "console/kept.html")]
pub(super) struct KeptPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) shell: Shell<'a>,
    pub(super) search: KeptSearch,
    pub(super) rows: Vec<KeptRow>,
    pub(super) query: Option<String>,
    pub(super) next: Option<String>,
}

/// All that were found?
#[derive(Template)]
#[template(path = "console/confirm.html")]
pub(super) struct ConfirmPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) shell: Shell<'a>,
    pub(super) query: &'a str,
    pub(super) kept: bool,
    pub(super) criteria: Vec<(&'static str, String)>,
    pub(super) count: u64,
    /// Whether there may be more.
    pub(super) more: bool,
    /// Whether one operator may do that alone.
    pub(super) alone: bool,
}

/// How far it is.
#[derive(Template)]
#[template(path = "console/bulk.html")]
pub(super) struct BulkPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) shell: Shell<'a>,
    pub(super) name: &'a str,
    /// The address to send to a second operator.
    pub(super) url: String,
    pub(super) criteria: Vec<(&'static str, String)>,
    pub(super) bulk: &'a Bulk,
    pub(super) may_decide: bool,
    pub(super) stuck: bool,
}

/// Messages that nobody took.
#[derive(Template)]
#[template(path = "console/webhooks.html")]
pub(super) struct DeadPage<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) shell: Shell<'a>,
    pub(super) rows: Vec<DeadRow>,
    pub(super) next: Option<String>,
}

/// A row of a table that can be taken away.
pub(super) trait Row {
    /// What the columns are called.
    const NAMES: &'static [&'static str];

    /// What is in them.
    fn cells(&self) -> Vec<&str>;
}

/// A link in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkRow {
    pub(super) id: String,
    pub(super) state: &'static str,
    pub(super) kind: &'static str,
    pub(super) client: String,
    pub(super) operation: String,
    pub(super) provider: String,
    pub(super) issuer: String,
    pub(super) subject: String,
    pub(super) created_at: String,
    pub(super) expires_at: String,
}

impl LinkRow {
    pub(super) fn of(elicitation: &Elicitation) -> Self {
        let terms = elicitation.terms();
        let provider = match &terms.request {
            Request::Secret(_) => String::new(),
            Request::OAuth(request) => request.provider.clone(),
            Request::Payment(request) => request.provider.clone(),
        };
        Self {
            id: terms.id.to_string(),
            state: elicitation.state().name().as_str(),
            kind: terms.kind().as_str(),
            client: terms.client.to_string(),
            operation: terms.operation.name.clone(),
            provider,
            issuer: terms.subject.issuer.clone(),
            subject: terms.subject.id.clone(),
            created_at: terms.created_at.to_string(),
            expires_at: elicitation.expires_at().to_string(),
        }
    }
}

impl Row for LinkRow {
    const NAMES: &'static [&'static str] = &[
        "id",
        "state",
        "kind",
        "client",
        "operation",
        "provider",
        "issuer",
        "subject",
        "createdAt",
        "expiresAt",
    ];

    fn cells(&self) -> Vec<&str> {
        let Self { id, state, kind, client, operation, provider, issuer, subject, created_at, expires_at } =
            self;
        vec![id, state, kind, client, operation, provider, issuer, subject, created_at, expires_at]
    }
}

/// One thing that is kept, in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptRow {
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) client: String,
    pub(super) slot: String,
    pub(super) provider: String,
    pub(super) issuer: String,
    pub(super) subject: String,
    pub(super) since: String,
    pub(super) until: String,
    pub(super) used_at: String,
}

impl KeptRow {
    pub(super) fn of(KeptEntry { client, subject, slot, grant }: KeptEntry) -> Self {
        let provider = match &grant.held {
            Held::Tokens { provider, .. } => provider.clone(),
            Held::Secret { .. } | Held::Ended { .. } => String::new(),
        };
        Self {
            id: grant.id.to_string(),
            kind: grant.held.kind().as_str(),
            client: client.to_string(),
            slot,
            provider,
            issuer: subject.issuer,
            subject: subject.id,
            since: grant.since.to_string(),
            until: grant.until.to_string(),
            used_at: grant.used_at.map(|at| at.to_string()).unwrap_or_default(),
        }
    }
}

impl Row for KeptRow {
    const NAMES: &'static [&'static str] =
        &["id", "kind", "client", "slot", "provider", "issuer", "subject", "since", "until", "usedAt"];

    fn cells(&self) -> Vec<&str> {
        let Self { id, kind, client, slot, provider, issuer, subject, since, until, used_at } = self;
        vec![id, kind, client, slot, provider, issuer, subject, since, until, used_at]
    }
}

/// A message that nobody took.
pub(super) struct DeadRow {
    pub(super) client: String,
    pub(super) elicitation: String,
    pub(super) event: String,
    pub(super) at: String,
    pub(super) tries: u8,
}

impl DeadRow {
    pub(super) fn of(Dead { client, elicitation, notice }: &Dead) -> Self {
        Self {
            client: client.to_string(),
            elicitation: elicitation.to_string(),
            event: notice.event(),
            at: notice.at.to_string(),
            tries: notice.tries,
        }
    }
}

/// A step of a story.
pub(super) struct Step {
    pub(super) at: String,
    pub(super) what: String,
    pub(super) actor: String,
    pub(super) reason: String,
}

impl Step {
    pub(super) fn of(event: &Event) -> Self {
        Self {
            at: event.at.to_string(),
            what: event.what.as_str().replace('_', " "),
            actor: match &event.actor {
                Actor::Client(client) => format!("client {client}"),
                Actor::Person => "the person".to_owned(),
                Actor::Visitor => "somebody at a browser".to_owned(),
                Actor::Operator(operator) => format!("operator {operator}"),
                Actor::Processor => "the payment processor".to_owned(),
                Actor::Clock => "time".to_owned(),
            },
            reason: event.reason.clone().unwrap_or_default(),
        }
    }
}

/// What is known of a link beside what a list shows.
pub(super) fn facts(elicitation: &Elicitation) -> Vec<(&'static str, String)> {
    let terms = elicitation.terms();
    let mut facts = vec![
        ("Summary, supplied by the client", terms.operation.summary.clone()),
        ("Message, supplied by the client", terms.message.clone()),
    ];
    if let Some(at) = elicitation.opened_at() {
        facts.push(("Opened", at.to_string()));
    }
    if let Some(keep) = &terms.keep {
        facts.push(("To be kept", format!("in the slot {}, for {} days", keep.slot, keep.days)));
    }
    if let Request::Payment(request) = &terms.request {
        facts.push(("Amount", request.money.to_string()));
        facts.push(("Reference", request.reference.clone()));
    }
    for order in elicitation.orders() {
        let mut words = format!("{}, begun {}", order.stage.as_str(), order.begun_at);
        if let Some(id) = order.id() {
            words = format!("{words}, {id}");
        }
        if let Some((payment, why)) = order.payment() {
            let why = match why {
                None => "",
                Some(Why::Late) => ", paid too late",
                Some(Why::Mismatch) => ", not what was asked for",
                Some(Why::Unclaimed) => ", claimed by nobody",
            };
            words = format!("{words}, payment {payment}{why}");
        }
        facts.push(("Order", words));
    }
    facts
}

/// Something to choose.
pub(super) struct Choice {
    pub(super) value: String,
    pub(super) label: String,
    pub(super) chosen: bool,
}

fn choices<'a>(chosen: Option<&str>, all: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Choice> {
    let choice = |(value, label): (&str, &str)| Choice {
        value: value.to_owned(),
        label: label.to_owned(),
        chosen: chosen == Some(value),
    };
    all.into_iter().map(choice).collect()
}

/// The clients and providers that there are, in their order.
fn known(gate: &Gate) -> (Vec<String>, Vec<String>) {
    let mut clients: Vec<_> = gate.clients.all().map(|client| client.id.to_string()).collect();
    let mut providers: Vec<_> = gate.providers.keys().chain(gate.payments.keys()).cloned().collect();
    clients.sort();
    providers.sort();
    (clients, providers)
}

fn same(values: &[String]) -> impl Iterator<Item = (&str, &str)> {
    values.iter().map(|value| (value.as_str(), value.as_str()))
}

const KINDS: [(&str, &str); 3] = [("secret", "secret"), ("oauth", "OAuth"), ("payment", "payment")];
const AGES: [(u64, &str); 5] = [
    (60, "more than a minute"),
    (300, "more than 5 minutes"),
    (900, "more than 15 minutes"),
    (3600, "more than an hour"),
    (86_400, "more than a day"),
];

/// The search for links, filled in as it was.
pub(super) struct Search {
    pub(super) clients: Vec<Choice>,
    pub(super) kinds: Vec<Choice>,
    pub(super) providers: Vec<Choice>,
    pub(super) states: Vec<Choice>,
    pub(super) ages: Vec<Choice>,
    pub(super) operation: String,
    pub(super) issuer: String,
    pub(super) subject: String,
}

impl Search {
    pub(super) fn of(gate: &Gate, filter: Option<&Filter>, now: Timestamp) -> Self {
        let none = Filter::default();
        let filter = filter.unwrap_or(&none);
        let (clients, providers) = known(gate);
        let state = match filter.states.as_slice() {
            [] => "open",
            [one] => one.as_str(),
            _ => "any",
        };
        let states = StateName::ALL.map(StateName::as_str);
        let named = states.iter().map(|state| (*state, *state));
        // As it was chosen: a search may be looked at a while later.
        let age = filter.issued_before.map(|moment| moment.until(now));
        let age = age.and_then(|age| AGES.iter().rfind(|(least, _)| age >= Duration::from_secs(*least)));
        let age = age.map(|(least, _)| least.to_string());
        let ages = AGES.map(|(least, label)| (least.to_string(), label));
        let subject = filter.subject.as_ref();
        Self {
            clients: choices(filter.client.as_ref().map(ToString::to_string).as_deref(), same(&clients)),
            kinds: choices(filter.kind.map(Kind::as_str), KINDS),
            providers: choices(filter.provider.as_deref(), same(&providers)),
            states: choices(Some(state), [("open", "not ended"), ("any", "any")].into_iter().chain(named)),
            ages: choices(age.as_deref(), ages.iter().map(|(value, label)| (value.as_str(), *label))),
            operation: filter.operation.clone().unwrap_or_default(),
            issuer: subject.map(|subject| subject.issuer.clone()).unwrap_or_default(),
            subject: subject.map(|subject| subject.id.clone()).unwrap_or_default(),
        }
    }
}

/// The search for what is kept, filled in as it was.
pub(super) struct KeptSearch {
    pub(super) clients: Vec<Choice>,
    pub(super) kinds: Vec<Choice>,
    pub(super) providers: Vec<Choice>,
    pub(super) slot: String,
    pub(super) issuer: String,
    pub(super) subject: String,
}

impl KeptSearch {
    pub(super) fn of(gate: &Gate, filter: &KeptFilter) -> Self {
        let (clients, providers) = known(gate);
        let subject = filter.subject.as_ref();
        Self {
            clients: choices(filter.client.as_ref().map(ToString::to_string).as_deref(), same(&clients)),
            // Payments are not kept.
            kinds: choices(filter.kind.map(Kind::as_str), KINDS.into_iter().take(2)),
            providers: choices(filter.provider.as_deref(), same(&providers)),
            slot: filter.slot.clone().unwrap_or_default(),
            issuer: subject.map(|subject| subject.issuer.clone()).unwrap_or_default(),
            subject: subject.map(|subject| subject.id.clone()).unwrap_or_default(),
        }
    }
}

/// What a query asks for, in words.
pub(super) fn criteria(query: &Query) -> Vec<(&'static str, String)> {
    let mut words = Vec::new();
    let mut say = |name, value: Option<String>| words.extend(value.map(|value| (name, value)));
    match query {
        Query::Links(filter) => {
            say("Client", filter.client.as_ref().map(ToString::to_string));
            say("Kind", filter.kind.map(|kind| kind.to_string()));
            say("Provider", filter.provider.clone());
            say("Operation", filter.operation.clone());
            say(
                "Person",
                filter.subject.as_ref().map(|subject| format!("{} at {}", subject.id, subject.issuer)),
            );
            say("Issued before", filter.issued_before.map(|moment| moment.to_string()));
            let live: Vec<_> = filter
                .states
                .iter()
                .filter(|state| !state.is_terminal())
                .map(|state| state.as_str())
                .collect();
            say("State", (!live.is_empty()).then(|| live.join(", ")));
        }
        Query::Kept(filter) => {
            say("Id", filter.id.map(|id| id.to_string()));
            say("Client", filter.client.as_ref().map(ToString::to_string));
            say("Kind", filter.kind.map(|kind| kind.to_string()));
            say("Provider", filter.provider.clone());
            say("Slot", filter.slot.clone());
            say(
                "Person",
                filter.subject.as_ref().map(|subject| format!("{} at {}", subject.id, subject.issuer)),
            );
        }
    }
    words
}
