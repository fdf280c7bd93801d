//! What ends by time alone, with a clock that the test moves.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sidegate::domain::{Clock, Elicitation, ElicitationId, Kind, Subject, Timestamp};
use sidegate::flow::checkpoint::TrailCare;
use sidegate::flow::confirm::Confirmed;
use sidegate::flow::departure::BROWSER_COOKIE;
use sidegate::flow::finish::Submitted;
use sidegate::flow::form::FormProof;
use sidegate::flow::issue::Ask;
use sidegate::flow::keys::KeyWatch;
use sidegate::flow::open::{Arrival, Guest};
use sidegate::flow::page::Page as OurPage;
use sidegate::flow::sign_in::Begun;
use sidegate::flow::trail::read_trail;
use sidegate::flow::{Client, Error, Gate, Quotas};
use sidegate::identity::confirm::Confirm;
use sidegate::identity::handoff::{Handoff, HandoffSettings};
use sidegate::identity::{Browser, IdentitySource};
use sidegate::notify::local::Local;
use sidegate::store::memory::Memory;
use sidegate::system::SystemRandom;
use sidegate::vault::{Ring, RingKey};
use tokio_util::sync::CancellationToken;

use crate::sample::{SPANS, START, client, terms};

/// A clock that stands still until it is moved.
struct Hand(AtomicI64);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

const ISSUER: &str = "https://mcp.example";
const SOURCE: &str = "own";

/// The rules over a store in memory.
struct House {
    gate: Gate,
    hand: Arc<Hand>,
    client: Arc<Client>,
}

impl House {
    async fn with(identity: Arc<dyn IdentitySource>) -> Self {
        let hand = Arc::new(Hand(AtomicI64::new(START.millis())));
        let random = Arc::new(SystemRandom);
        let key = RingKey::new("one".to_owned(), &[7; 32]).unwrap();
        let client = Client {
            providers: None,
            id: client("weather"),
            name: "Weather tools".to_owned(),
            host: None,
            kinds: vec![Kind::Secret],
            source: SOURCE.to_owned(),
            identity,
            round_budget: 8,
            endpoint: None,
        };
        let gate = Gate {
            providers: std::collections::HashMap::new(),
            payments: sidegate::upstream::payment::Payments::default(),
            console: sidegate::flow::console::Console::default(),
            errands: sidegate::flow::errands::Errands::new([]),
            store: Arc::new(Memory::new()),
            notify: Arc::new(Local::new()),
            ring: Ring::new(key, Vec::new(), random.clone()),
            keys: KeyWatch::default(),
            clock: hand.clone(),
            random,
            clients: std::iter::once(client).collect(),
            public_url: "https://gate.example".to_owned(),
            spans: sidegate::domain::Spans { longest_life: Duration::from_hours(48), ..SPANS },
            quotas: Quotas { per_client: 100, per_subject: 100 },
            last_stray: AtomicI64::new(0),
            trail_care: sidegate::flow::checkpoint::TrailCare::new(None, None),
            shutdown: CancellationToken::new(),
        };
        gate.look_at_keys().await.unwrap();
        let client = gate.clients.find(&crate::sample::client("weather")).unwrap().clone();
        Self { gate, hand, client }
    }

    fn passes(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap();
        self.hand.0.fetch_add(millis, Ordering::SeqCst);
    }

    async fn issue(&self, lifetime: u64) -> Elicitation {
        let terms = terms();
        let ask = Ask::new(Some(ada()), terms.operation, "Needed.", terms.request, Some(lifetime), None);
        self.gate.issue(&self.client, ask.unwrap(), None).await.unwrap().elicitation
    }
}

fn ada() -> Subject {
    Subject { issuer: ISSUER.to_owned(), id: "ada".to_owned() }
}

/// The cookies of a browser.
#[derive(Default)]
struct Jar(Mutex<BTreeMap<String, String>>);

impl Jar {
    fn put(&self, name: &str, value: String) {
        self.0.lock().unwrap().insert(name.to_owned(), value);
    }

    /// Hands the browser to `use_it`.
    async fn browse<T>(&self, use_it: impl AsyncFnOnce(&Browser<'_>) -> T) -> T {
        let cookie = |name: &str| self.0.lock().unwrap().get(name).cloned();
        let browser = Browser {
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
            forwarded: false,
            header: &|_| Vec::new(),
            cookie: &cookie,
        };
        use_it(&browser).await
    }
}

impl House {
    async fn arrives(&self, id: ElicitationId, jar: &Jar) -> Result<Box<Guest>, Option<FormProof>> {
        match jar.browse(async |browser| self.gate.arrive(id, browser).await.unwrap()).await {
            Arrival::Guest(guest) => Ok(guest),
            Arrival::WrongPerson { sign_in, .. } | Arrival::Nobody { sign_in, .. } => Err(sign_in),
        }
    }

    /// Presses the button; the name of the hand-off.
    async fn leaves(&self, id: ElicitationId, jar: &Jar) -> String {
        let proof = self.arrives(id, jar).await.err().unwrap();
        let begun = async |browser: &Browser<'_>| {
            self.gate.begin_sign_in(OurPage::Link(id), browser, proof.as_ref(), true, false).await.unwrap()
        };
        let Begun::Leaves { departure, browser, .. } = jar.browse(begun).await else { panic!("it begins") };
        jar.put(BROWSER_COOKIE, browser);
        departure
    }

    async fn accepts(&self, handoff: &str) -> Result<String, Error> {
        let back = self.gate.accept_handoff(&self.client, handoff, ada(), None).await?;
        Ok(back.url.rsplit_once('=').unwrap().1.to_owned())
    }

    async fn returns(&self, handoff: &str, ticket: &str, jar: &Jar) -> bool {
        let back = jar
            .browse(async |browser| self.gate.finish_handoff(handoff, ticket, browser).await.unwrap())
            .await;
        let Some(Ok((cookie, name))) = back.map(|back| back.session) else { return false };
        jar.put(&cookie, name);
        true
    }
}

async fn handed_off() -> House {
    let verify_url = "https://mcp.example/verify".parse().unwrap();
    House::with(Arc::new(Handoff::new(HandoffSettings { issuer: ISSUER.to_owned(), verify_url }))).await
}

#[tokio::test]
async fn a_sign_in_may_take_an_hour_and_its_ticket_a_minute() {
    let (house, jar) = (handed_off().await, Jar::default());
    let id = house.issue(86_400).await.id();
    let slow = house.leaves(id, &jar).await;
    house.passes(Duration::from_mins(59));
    let ticket = house.accepts(&slow).await.unwrap();
    house.passes(Duration::from_mins(1));
    assert!(!house.returns(&slow, &ticket, &jar).await, "a minute is over");
    let next = house.leaves(id, &jar).await;
    let ticket = house.accepts(&next).await.unwrap();
    house.passes(Duration::from_secs(59));
    assert!(house.returns(&next, &ticket, &jar).await);
    let late = house.leaves(house.issue(86_400).await.id(), &Jar::default()).await;
    house.passes(Duration::from_hours(1));
    assert!(matches!(house.accepts(&late).await, Err(Error::NotFound)), "an hour is over");
}

#[tokio::test]
async fn a_session_ends_a_quarter_of_an_hour_after_its_last_use_and_after_eight_hours() {
    let (house, jar) = (handed_off().await, Jar::default());
    let id = house.issue(86_400).await.id();
    let sign_in = async || {
        let handoff = house.leaves(id, &jar).await;
        let ticket = house.accepts(&handoff).await.unwrap();
        assert!(house.returns(&handoff, &ticket, &jar).await);
    };
    sign_in().await;
    house.passes(Duration::from_mins(15));
    assert!(house.arrives(id, &jar).await.is_err(), "it was not used");
    sign_in().await;
    // Used every fourteen minutes it lasts, until it has lasted long enough.
    for _ in 0..34 {
        house.passes(Duration::from_mins(14));
        assert!(house.arrives(id, &jar).await.is_ok());
    }
    house.passes(Duration::from_mins(4));
    assert!(house.arrives(id, &jar).await.is_err(), "eight hours are over");
}

#[tokio::test]
async fn a_code_counts_for_ten_minutes_however_much_time_the_link_has() {
    let house = House::with(Arc::new(Confirm::new(ISSUER.to_owned()))).await;
    let jar = Jar::default();
    for (waits, in_time) in [(599, true), (600, false)] {
        let id = house.issue(86_400).await.id();
        let guest = house.arrives(id, &jar).await.ok().unwrap();
        let submitted = house.gate.submit_secret(&guest, "render", |_| Some("wk-1")).await.unwrap();
        let Submitted::Finished { code, left, .. } = submitted else { panic!("{submitted:?}") };
        assert_eq!(left, Duration::from_mins(10));
        house.passes(Duration::from_secs(waits));
        let confirmed = house.gate.confirm(&house.client, id, &code).await;
        assert_eq!(matches!(confirmed, Ok(Confirmed::Right)), in_time, "{confirmed:?}");
        let held = house.gate.store.outcome(id).await.unwrap().is_some();
        house.gate.sweep().await.unwrap();
        assert!(held && house.gate.store.outcome(id).await.unwrap().is_some() == in_time);
    }
}

/// The embedded store's trail: what is older than it is to be kept goes, and nothing younger.
#[tokio::test]
async fn the_audit_trail_is_kept_as_long_as_it_is_to_be() {
    let source = HandoffSettings {
        issuer: ISSUER.to_owned(),
        verify_url: "https://mcp.example/verify".parse().unwrap(),
    };
    let mut house = House::with(Arc::new(Handoff::new(source))).await;
    house.gate.trail_care = TrailCare::new(None, Some(Duration::from_hours(48)));
    let mut days = Vec::new();
    for day in 0_u64..6 {
        let begun = house.gate.store.trail().await.unwrap().end.number;
        for _ in 0..3 {
            house.issue(600).await;
        }
        let after = house.gate.store.trail().await.unwrap();
        assert!(after.end.number >= begun + 3);
        days.push(begun);
        house.gate.tend().await.unwrap();
        let start = house.gate.store.trail().await.unwrap().start.number;
        // Of what happened two days ago to the hour all is there.
        let oldest = usize::try_from(day.saturating_sub(2)).unwrap();
        assert_eq!(start, days[oldest], "on day {day}");
        house.passes(Duration::from_hours(24));
    }
    let trail = read_trail(&*house.gate.store, &house.gate.ring, |_, event| assert!(event.is_some()));
    let extent = trail.await.unwrap();
    assert!(extent.start.number > 0 && extent.end.number > extent.start.number);
}
