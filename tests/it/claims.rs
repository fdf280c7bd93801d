//! Releases: one winner whatever races, nothing after the end, the bytes gone when their time is over.

use std::collections::HashSet;
use std::time::Duration;

use rstest::rstest;
use serde_json::json;

use super::harness::handler::Issued;
use super::harness::{Backing, Fleet, Server, Setup, ask, eventually};

const CANARY: &str = "CANARY-outcome-7f3a9c51";

#[rstest]
#[tokio::test]
async fn r20_of_sixty_four_parallel_claims_one_wins(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let fleet = Fleet::start(backing, Setup::local()).await;
    for round in 0..5 {
        let issued = fleet.at(round).handler().issue(&ask()).await;
        let elsewhere = round + 1;
        fleet.at(elsewhere).visitor().complete(&fleet.link(&issued.url, elsewhere), "wk-1").await;
        let claims: Vec<_> = (0..64)
            .map(|number| {
                // Eight attempts, each asked eight times, four at each of two instances.
                let (handler, issued, attempt) = (fleet.at(number / 8).handler(), issued.clone(), number % 8);
                tokio::spawn(async move {
                    let reply = handler.claim(&issued, Some(&format!("attempt-{attempt}"))).await;
                    (
                        attempt,
                        reply.status.as_u16(),
                        reply.problem().1.to_owned(),
                        reply.text.contains("wk-1"),
                    )
                })
            })
            .collect();
        let (mut winners, mut answers) = (HashSet::new(), 0);
        for claim in claims {
            match claim.await.unwrap() {
                (attempt, 200, _, true) => {
                    winners.insert(attempt);
                    answers += 1;
                }
                (_, 409, code, false) => assert_eq!(code, "already_claimed"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((winners.len(), answers), (1, 8), "round {round}");
    }
}

#[rstest]
#[tokio::test]
async fn r20_claims_without_attempts_are_all_different(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let fleet = Fleet::start(backing, Setup::local()).await;
    let issued = fleet.at(0).handler().issue(&ask()).await;
    fleet.at(0).visitor().complete(&issued.url, "wk-1").await;
    let claims: Vec<_> = (0..64)
        .map(|number| {
            let (handler, issued) = (fleet.at(number).handler(), issued.clone());
            tokio::spawn(async move { handler.claim(&issued, None).await.status.as_u16() })
        })
        .collect();
    let mut winners = 0;
    for claim in claims {
        winners += usize::from(claim.await.unwrap() == 200);
    }
    assert_eq!(winners, 1);
}

#[rstest]
#[tokio::test]
async fn r21_whatever_races_there_is_one_end_and_nothing_after_it(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let fleet = Fleet::start(backing, Setup::local().with("SIDEGATE_LIFETIMES__LONGEST", "20")).await;
    let (handler, operator) = (fleet.at(0).handler(), fleet.at(0).operator());
    let (visitor, other_handler) = (fleet.at(1).visitor(), fleet.at(1).handler());
    let mut forms = Vec::new();
    for _ in 0..24 {
        let mut ask = ask();
        ask["expiresIn"] = 10.into();
        let mut issued = handler.issue(&ask).await;
        issued.url = fleet.link(&issued.url, 1);
        let form = visitor.get(&issued.url).await.filled(&[("api_key", CANARY)]);
        forms.push((issued, form));
    }
    // The first half races at once, the second at the moment of its expiry.
    let mut races = Vec::new();
    for (index, (issued, form)) in forms.iter().cloned().enumerate() {
        let (handler, operator, visitor) = (handler.clone(), operator.clone(), visitor.clone());
        let other_handler = other_handler.clone();
        races.push(tokio::spawn(async move {
            if index >= 12 {
                let view = handler.get(&format!("v1/elicitations/{}", issued.id)).await.ok();
                tokio::time::sleep(until(view["expiresAt"].as_str().unwrap())).await;
            }
            let to = |action: &str| format!("{}/{action}", issued.url);
            let (submit, decline, extend) = (to("secret"), to("decline"), to("extend"));
            let (submitted, declined, extended, revoked, cancelled, claimed) = tokio::join!(
                visitor.post(&submit, &form),
                visitor.post(&decline, &form),
                visitor.post(&extend, &form),
                operator.revoke(&issued.id),
                handler.cancel(&issued.id),
                other_handler.claim(&issued, Some("racer")),
            );
            let accepted = [
                ("completed", submitted.status == 303),
                ("declined", declined.status == 303),
                ("revoked", revoked.status.is_success()),
                ("cancelled", cancelled.status.is_success()),
            ];
            drop(extended);
            (issued, accepted, claimed.status.as_u16() == 200)
        }));
    }
    for race in races {
        let (issued, accepted, early) = race.await.unwrap();
        let ends: Vec<&str> =
            accepted.iter().filter(|(_, accepted)| *accepted).map(|(state, _)| *state).collect();
        let state = handler.state(&issued.id).await;
        let late = handler.claim(&issued, Some("late")).await;
        match state.as_str() {
            "revoked" => {
                // Only a revocation may follow a completion.
                assert!(ends.iter().all(|end| ["revoked", "completed"].contains(end)), "{ends:?}");
                assert_eq!(late.problem(), (409, "ended"));
            }
            "expired" => {
                assert_eq!(ends, [""; 0], "it expired, so nothing else was accepted");
                assert_eq!(late.problem(), (409, "ended"));
            }
            "completed" | "claimed" => {
                assert_eq!(ends, ["completed"]);
                assert_eq!(late.status == 200, !early, "released exactly once");
            }
            end => {
                assert_eq!(ends, [end]);
                assert!(!early);
                assert_eq!(late.problem(), (409, "ended"));
            }
        }
        assert_eq!(
            handler.state(&issued.id).await,
            if late.status == 200 { "claimed".to_owned() } else { state }
        );
    }
}

/// How long it is until this time.
fn until(time: &str) -> Duration {
    use time::format_description::well_known::Rfc3339;
    #[expect(clippy::disallowed_methods, reason = "the service runs by the real clock")]
    let now = time::OffsetDateTime::now_utc();
    (time::OffsetDateTime::parse(time, &Rfc3339).unwrap() - now).try_into().unwrap_or_default()
}

#[rstest]
#[tokio::test]
async fn r22_a_lost_answer_is_given_again_within_the_window_and_not_after(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let fleet = Fleet::start(backing, Setup::local().with("SIDEGATE_LIFETIMES__CLAIM_WINDOW", "2")).await;
    let handler = fleet.at(0).handler();
    let issued = handler.issue(&ask()).await;
    fleet.at(0).visitor().complete(&issued.url, "wk-1").await;
    let first = handler.claim(&issued, Some("order-1")).await;
    assert!(!first.headers.contains_key("idempotent-replay"));
    let replay = fleet.at(1).handler().claim(&issued, Some("order-1")).await;
    assert_eq!(replay.headers["idempotent-replay"], "true");
    assert_eq!(first.text, replay.text);
    assert_eq!(handler.claim(&issued, Some("order-2")).await.problem(), (409, "already_claimed"));
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(handler.claim(&issued, Some("order-1")).await.problem(), (409, "already_claimed"));
}

#[tokio::test]
async fn r22_a_claim_survives_a_crash_of_the_service() {
    let mut server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    server.visitor().complete(&issued.url, "wk-1").await;
    assert_eq!(server.handler().claim(&issued, Some("order-1")).await.status, 200);
    let server = server.crash().await;
    let replay = server.handler().claim(&issued, Some("order-1")).await;
    assert_eq!(replay.headers["idempotent-replay"], "true");
    assert_eq!(server.handler().claim(&issued, None).await.problem(), (409, "already_claimed"));
}

/// The sealed outcomes in the store, by what its table holds.
fn outcomes(server: &Server) -> Vec<Vec<u8>> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = rusqlite::Connection::open_with_flags(server.database(), flags).unwrap();
    let mut all = database.prepare("SELECT sealed FROM outcomes").unwrap();
    all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Whether the store's files hold these bytes anywhere.
fn is_stored(server: &Server, bytes: &[u8]) -> bool {
    std::fs::read_dir(server.data()).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("sidegate.db")
            && std::fs::read(&path).unwrap().windows(bytes.len()).any(|part| part == bytes)
    })
}

async fn completed(server: &Server) -> (Issued, Vec<u8>) {
    let issued = server.handler().issue(&ask()).await;
    server.visitor().complete(&issued.url, CANARY).await;
    let sealed = outcomes(server).pop().expect("a completed elicitation has an outcome");
    assert!(is_stored(server, &sealed));
    (issued, sealed)
}

async fn is_wiped(server: &Server, sealed: &[u8]) {
    eventually("the outcome's bytes are gone", async || {
        (outcomes(server).is_empty() && !is_stored(server, sealed)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn r25_after_the_claim_window_the_bytes_are_gone() {
    let server = Server::start(Setup::local().with("SIDEGATE_LIFETIMES__CLAIM_WINDOW", "1")).await;
    let (issued, sealed) = completed(&server).await;
    assert_eq!(server.handler().claim(&issued, None).await.status, 200);
    is_wiped(&server, &sealed).await;
}

#[tokio::test]
async fn r25_an_outcome_that_nobody_claims_expires_and_its_bytes_are_gone() {
    let server = Server::start(Setup::local().with("SIDEGATE_LIFETIMES__CLAIM_BY", "1")).await;
    let (issued, sealed) = completed(&server).await;
    is_wiped(&server, &sealed).await;
    assert_eq!(server.handler().state(&issued.id).await, "expired");
    assert_eq!(server.handler().claim(&issued, None).await.text_at("/state"), "expired");
    let page = server.visitor().get(&issued.url).await;
    assert_eq!(page.status, 410);
}

#[tokio::test]
async fn r25_after_revocation_the_bytes_are_gone() {
    let server = Server::local().await;
    let (issued, sealed) = completed(&server).await;
    server.operator().revoke(&issued.id).await.ok();
    is_wiped(&server, &sealed).await;
}

#[tokio::test]
async fn r25_a_service_that_stops_leaves_no_bytes_behind() {
    let mut server = Server::local().await;
    let (issued, sealed) = completed(&server).await;
    server.operator().revoke(&issued.id).await.ok();
    assert!(server.stop().await.success());
    assert!(!is_stored(&server, &sealed), "the log was cleaned before the process ended");
}

#[tokio::test]
async fn r25_after_retention_nothing_is_left_of_it() {
    let setup = Setup::local()
        .with("SIDEGATE_LIFETIMES__RETENTION", "1")
        .with("SIDEGATE_LIFETIMES__CLAIM_WINDOW", "1");
    let server = Server::start(setup).await;
    let issued = server.handler().issue(&ask()).await;
    server.visitor().decline(&issued.url).await;
    assert_eq!(server.handler().state(&issued.id).await, "declined", "for a while it can be read");
    let path = format!("v1/elicitations/{}", issued.id);
    eventually("it is erased", async || (server.handler().get(&path).await.status == 404).then_some(()))
        .await;
    let page = server.visitor().get(&issued.url).await;
    assert_eq!(page.status, 404);
    let found =
        server.operator().post("v1/admin/elicitations/search", &json!({"states": ["declined"]})).await.ok();
    assert_eq!(found["elicitations"], json!([]));
}
