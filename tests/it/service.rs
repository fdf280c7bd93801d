//! The service as a whole: keys, limits, failure, start and stop.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, RETRY_AFTER};
use rstest::rstest;
use serde_json::{Value, json};
use sidegate::api_key::KeyDigest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::harness::issuer::Issuer;
use super::harness::{Backing, Fleet, Handler, Server, Setup, Visitor, ask, sidegate};

fn ask_for(issuer: &Issuer, person: &str) -> Value {
    let mut ask = ask();
    ask["subject"] = json!({"issuer": issuer.name(), "id": person});
    ask
}

#[tokio::test]
async fn r33_a_key_is_256_random_bits_with_prefix_and_checksum_and_only_its_digest_is_kept() {
    let made = async || {
        let output = sidegate().args(["client", "new", "--id", "weather", "--json"]).output().await.unwrap();
        let made: Value = serde_json::from_slice(&output.stdout).unwrap();
        (made["apiKey"].as_str().unwrap().to_owned(), made["digest"].as_str().unwrap().to_owned())
    };
    let ((one, digest), (two, _)) = (made().await, made().await);
    let random = one.strip_prefix("sgk_").unwrap();
    assert_eq!(random.len(), 43 + 6, "{one}");
    assert_ne!(one, two);
    assert_eq!(KeyDigest::of_text(&one).to_string(), digest);
    assert!(digest.starts_with("sha256:") && digest.len() == 71);

    let server = Server::local().await;
    let key = server.api_key();
    server.handler().issue(&ask()).await;
    for entry in std::fs::read_dir(server.data()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(key.len()).any(|part| part == key.as_bytes());
        assert_eq!(found, path.ends_with("dev.json"), "{}", path.display());
    }
}

#[tokio::test]
async fn r33_wrong_missing_and_foreign_keys_make_no_difference() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let path = format!("v1/elicitations/{}", issued.id);
    let key = server.api_key();
    let mut changed = key.clone().into_bytes();
    changed[10] = if changed[10] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    let request = |authorization: &str| {
        server.visitor().request(Method::GET, &server.url(&path)).header(AUTHORIZATION, authorization)
    };
    let mut answers = Vec::new();
    for authorization in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer x".to_owned(),
        format!("Bearer {changed}"),
        format!("Bearer {}", &key[..key.len() - 1]),
        format!("Bearer {}", server.operator_key()),
        format!("Basic {key}"),
        key.clone(),
        format!("Bearer {key} {key}"),
    ] {
        answers.push(Visitor::send(request(&authorization)).await);
    }
    answers.push(server.visitor().get(&server.url(&path)).await);
    answers.push(
        Visitor::send(request(&format!("Bearer {key}")).header(AUTHORIZATION, format!("Bearer {key}"))).await,
    );
    for answer in &answers {
        assert_eq!((answer.status.as_u16(), &answer.html), (401, &answers[0].html));
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    assert_eq!(
        Visitor::send(request(&format!("bearer {key}"))).await.status,
        200,
        "the scheme has no case (RFC 9110)"
    );
}

#[tokio::test]
async fn r33_two_keys_live_while_one_is_replaced() {
    let issuer = Issuer::in_file();
    let keys = ["sgk", "sgk"].map(|_| {
        let key =
            sidegate::api_key::generate(sidegate::api_key::Holder::Client, &sidegate::system::SystemRandom);
        secrecy::ExposeSecret::expose_secret(&key).to_owned()
    });
    let digests = keys.each_ref().map(|key| KeyDigest::of_text(key).to_string());
    let client = format!(
        "[[clients]]\nid = \"moving\"\nname = \"Moving\"\nidentity = \"staff\"\napi_key_digests = {digests:?}\n"
    );
    let server = Server::start(Setup::proxy(&issuer).and(&client)).await;
    let issued = server.handler().with_key(&keys[0]).issue(&ask_for(&issuer, "ada")).await;
    assert_eq!(
        server.handler().with_key(&keys[1]).state(&issued.id).await,
        "pending",
        "both are the same client"
    );
}

#[rstest]
#[tokio::test]
async fn r35_pending_elicitations_are_capped_for_each_client_and_subject(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let issuer = Issuer::in_file();
    let setup = Setup::proxy(&issuer)
        .with("SIDEGATE_LIMITS__PENDING_PER_CLIENT", "3")
        .with("SIDEGATE_LIMITS__PENDING_PER_SUBJECT", "2");
    let fleet = Fleet::start(backing, setup).await;
    let (handler, elsewhere) = (fleet.at(0).handler(), fleet.at(1).handler());
    let issue = async |handler: &Handler, person: &str| {
        handler.post("v1/elicitations", &ask_for(&issuer, person)).await
    };
    let first = issue(&handler, "ada").await.ok();
    issue(&elsewhere, "ada").await.ok();
    let full = issue(&handler, "ada").await;
    assert_eq!(full.problem(), (429, "too_many_pending"));
    assert!(full.text_at("/detail").contains("subject") && full.headers.contains_key(RETRY_AFTER));
    issue(&handler, "bob").await.ok();
    let full = issue(&handler, "cyd").await;
    assert_eq!(full.problem(), (429, "too_many_pending"));
    assert!(full.text_at("/detail").contains("client"));
    let mut round = ask_for(&issuer, "cyd");
    round["protocolVersion"] = "2026-07-28".into();
    assert_eq!(handler.round(&round).await.problem(), (429, "too_many_pending"), "rounds count as well");
    issue(&fleet.at(0).other_handler(), "ada").await.ok();
    elsewhere.cancel(first["id"].as_str().unwrap()).await.ok();
    issue(&handler, "ada").await.ok();
}

#[rstest]
#[tokio::test]
async fn r35_racing_issues_do_not_pass_the_cap(
    #[values(Backing::Embedded, Backing::Shared)] backing: Backing,
) {
    let setup = Setup::local().with("SIDEGATE_LIMITS__PENDING_PER_CLIENT", "10");
    let fleet = Fleet::start(backing, setup).await;
    let issues: Vec<_> = (0..40)
        .map(|number| {
            let handler = fleet.at(number).handler();
            tokio::spawn(async move { handler.post("v1/elicitations", &ask()).await.status.as_u16() })
        })
        .collect();
    let mut created = 0;
    for issue in issues {
        created += usize::from(issue.await.unwrap() == 201);
    }
    assert_eq!(created, 10);
}

#[tokio::test]
async fn r35_requests_are_limited_for_each_client_and_address() {
    let issuer = Issuer::in_file();
    let setup = Setup::proxy(&issuer)
        .with("SIDEGATE_LIMITS__REQUESTS_PER_SECOND_PER_CLIENT", "5")
        .with("SIDEGATE_LIMITS__REQUESTS_PER_SECOND_PER_ADDRESS", "5");
    let server = Server::start(setup).await;
    let path = format!("v1/elicitations/{}", "0".repeat(32));
    let mut limited = 0;
    for _ in 0..30 {
        let reply = server.handler().get(&path).await;
        if reply.status == 429 {
            assert_eq!(reply.problem(), (429, "too_many_requests"));
            assert!(reply.headers[RETRY_AFTER].to_str().unwrap().parse::<u64>().unwrap() >= 1);
            limited += 1;
        }
    }
    assert!(limited > 5, "{limited}");
    assert_eq!(server.other_handler().get(&path).await.status, 404, "others are unaffected");
    let mut limited = 0;
    for _ in 0..30 {
        let page = server.visitor().get(&server.url("e/x")).await;
        if page.status == 429 {
            assert_eq!(page.heading(), "Too many requests");
            assert!(page.headers.contains_key(RETRY_AFTER));
            limited += 1;
        }
    }
    assert!(limited > 5, "{limited}");
    assert_eq!(server.visitor().get(&server.url("healthz")).await.status, 200);
    // Guessing keys counts against the address too.
    let guess = server.handler().with_key("sgk_guess");
    assert_eq!(guess.get(&path).await.status, 429);
}

#[tokio::test]
async fn r35_slow_heads_and_bodies_are_cut_off() {
    let server = Server::local().await;
    let address = format!("127.0.0.1:{}", server.base().port().unwrap());
    let send = async |text: String| {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = timeout(Duration::from_secs(25), stream.read_to_string(&mut answer)).await;
        assert!(read.is_ok(), "the connection is still open: {answer}");
        answer
    };
    let head = format!("POST /v1/elicitations HTTP/1.1\r\nHost: {address}\r\n");
    let body = format!(
        "{head}Authorization: Bearer {}\r\nContent-Length: 500\r\nConnection: close\r\n\r\n{{",
        server.api_key()
    );
    let huge = format!("{head}X-Filler: {}\r\n\r\n", "x".repeat(200_000));
    let (slow_head, slow_body, huge) = tokio::join!(send(head), send(body), send(huge));
    assert!(slow_head.is_empty() || slow_head.starts_with("HTTP/1.1 408"), "{slow_head}");
    assert!(slow_body.starts_with("HTTP/1.1 408") && slow_body.contains("body_timeout"), "{slow_body}");
    assert!(huge.is_empty() || huge.starts_with("HTTP/1.1 4"), "{huge}");
    assert_eq!(server.visitor().get(&server.url("healthz")).await.status, 200);
}

/// A thousand that send a byte now and then do not keep others from being served, and are cut off.
#[tokio::test]
async fn r35_a_thousand_slow_connections_are_cut_off_and_hold_up_nobody() {
    let server = Server::local().await;
    let address = format!("127.0.0.1:{}", server.base().port().unwrap());
    let mut slow = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let address = address.clone();
        slow.spawn(async move {
            let mut stream = TcpStream::connect(&address).await.unwrap();
            stream.write_all(b"POST /v1/rounds HTTP/1.1\r\nX-Slow: ").await.unwrap();
            let (mut answer, mut bytes) = (String::new(), stream);
            for _ in 0..60 {
                if bytes.write_all(b"a").await.is_err() {
                    return true;
                }
                let read = timeout(Duration::from_millis(250), bytes.read_to_string(&mut answer)).await;
                if read.is_ok() {
                    return answer.is_empty() || answer.starts_with("HTTP/1.1 408");
                }
            }
            false
        });
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for _ in 0..20 {
        let issued = server.handler().issue(&ask()).await;
        server.visitor().complete(&issued.url, "wk-1").await;
        assert_eq!(server.handler().claim(&issued, None).await.status, 200);
    }
    while let Some(cut) = slow.join_next().await {
        assert!(cut.unwrap(), "one is still open");
    }
}

/// The sockets that a process has open.
fn sockets(server: &Server) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

#[tokio::test]
async fn r35_no_more_connections_are_open_than_are_to_be() {
    let server = Server::start(Setup::local().with("SIDEGATE_LIMITS__CONNECTIONS", "20")).await;
    let address = format!("127.0.0.1:{}", server.base().port().unwrap());
    let before = sockets(&server);
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(&address).await.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let open = sockets(&server) - before;
    // Each worker has its share, rounded up.
    assert!((10..=20 + 16).contains(&open), "{open}");
    drop(silent);
    // Once they have gone, or are cut off, others are served.
    let issued = timeout(Duration::from_secs(20), server.handler().issue(&ask())).await.unwrap();
    assert_eq!(server.handler().state(&issued.id).await, "pending");
}

#[tokio::test]
async fn r39_core_dumps_are_off() {
    let server = Server::local().await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
}

#[tokio::test]
async fn r40_without_a_working_store_every_step_is_refused_and_may_be_tried_again() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer)).await;
    let handler = server.handler();
    let ada = server.visitor().signed_in(issuer.token("ada"));
    let bob = server.visitor().signed_in(issuer.token("bob"));
    let open = handler.issue(&ask_for(&issuer, "ada")).await;
    let done = handler.issue(&ask_for(&issuer, "ada")).await;
    ada.complete(&done.url, "wk-1").await;
    let form = ada.get(&open.url).await.filled(&[("api_key", "wk-2")]);

    server.limit_files(Some(0));
    for (what, reply) in [
        ("issue", handler.post("v1/elicitations", &ask_for(&issuer, "ada")).await),
        ("claim", handler.claim(&done, None).await),
        ("cancel", handler.cancel(&open.id).await),
        ("revoke", server.operator().revoke(&open.id).await),
    ] {
        assert_eq!(reply.problem(), (503, "unavailable"), "{what}: {reply:?}");
        assert!(reply.headers.contains_key(RETRY_AFTER) && !reply.text.contains("wk-1"), "{what}");
    }
    for action in ["secret", "decline", "extend"] {
        let page = ada.post(&format!("{}/{action}", open.url), &form).await;
        assert_eq!(
            (page.status.as_u16(), page.heading().as_str()),
            (503, "This does not work right now"),
            "{action}"
        );
        assert!(page.headers.contains_key(RETRY_AFTER));
    }
    assert_eq!(
        bob.get(&open.url).await.status,
        503,
        "a refusal that cannot be put on the audit trail is no answer"
    );
    assert_eq!(handler.get("readyz").await.status, 503);
    assert_eq!(handler.get("healthz").await.status, 200);

    server.limit_files(None);
    assert_eq!(handler.get("readyz").await.status, 200);
    assert_eq!(handler.state(&open.id).await, "pending", "nothing was done");
    assert_eq!(handler.claim(&done, None).await.text_at("/credential/values/api_key"), "wk-1");
    assert_eq!(ada.post(&format!("{}/secret", open.url), &form).await.status, 303);
    assert_eq!(handler.claim(&open, None).await.text_at("/credential/values/api_key"), "wk-2");
}

#[tokio::test]
async fn r26_r40_a_key_that_was_removed_fails_closed_and_rotation_keeps_the_old_records() {
    let mut server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    server.visitor().complete(&issued.url, "wk-1").await;
    let key_file = server.data().join("keys.toml");
    let before = std::fs::read(&key_file).unwrap();
    let rotated = sidegate().args(["keys", "rotate", "--file"]).arg(&key_file).output().await.unwrap();
    assert!(rotated.status.success());
    let both = std::fs::read(&key_file).unwrap();
    server.stop().await;

    std::fs::remove_file(&key_file).unwrap();
    let fresh = sidegate().args(["keys", "new", "--file"]).arg(&key_file).output().await.unwrap();
    assert!(fresh.status.success());
    let mut without = server.start_again().await;
    let claim = without.handler().claim(&issued, None).await;
    assert_eq!(claim.problem(), (503, "unavailable"), "{claim:?}");
    assert_eq!(without.visitor().get(&without.url(&format!("e/{}", issued.id))).await.status, 503);
    assert!(
        without.log().contains("which is not in the key ring; put it back into the key file"),
        "{}",
        without.log()
    );
    let mut audit = sidegate();
    let audit = audit.args(["audit", "verify", "--data"]).arg(without.data()).output().await.unwrap();
    let said = String::from_utf8_lossy(&audit.stdout);
    assert!(audit.status.success() && said.contains("in order and unchanged"), "{audit:?}");
    assert!(said.contains("sealed under keys that are no longer in the key ring"), "{said}");
    without.stop().await;

    std::fs::write(&key_file, &both).unwrap();
    assert_ne!(before, both);
    let rotated = without.start_again().await;
    let newer = rotated.handler().issue(&ask()).await;
    rotated.visitor().complete(&newer.url, "wk-2").await;
    assert_eq!(rotated.handler().claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-1");
    assert_eq!(rotated.handler().claim(&newer, None).await.text_at("/credential/values/api_key"), "wk-2");
}

#[tokio::test]
async fn shutdown_ends_waiting_polls_with_the_state_as_it_is() {
    let mut server = Server::local().await;
    let (handler, ask) = (server.handler(), ask());
    let issued = handler.issue(&ask).await;
    let mut round = ask.clone();
    round["protocolVersion"] = "2026-07-28".into();
    let first = handler.round(&round).await;
    round["requestState"] = first.body["result"]["requestState"].clone();
    round["waitSeconds"] = 50.into();
    let path = format!("v1/elicitations/{}?wait=50", issued.id);
    let (poll, retry) = (handler.clone(), handler.clone());
    let waiting = tokio::spawn(async move { tokio::join!(poll.get(&path), retry.round(&round)) });
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!waiting.is_finished());
    let stopped = timeout(Duration::from_secs(10), server.stop()).await.expect("it stops at once");
    assert!(stopped.success(), "{stopped}");
    let (poll, retry) = waiting.await.unwrap();
    assert_eq!(poll.text_at("/state"), "pending");
    assert_eq!(retry.text_at("/outcome"), "input_required");
    let again = server.start_again().await;
    again.visitor().complete(&again.url(&format!("e/{}", issued.id)), "wk-1").await;
    assert_eq!(again.handler().state(&issued.id).await, "completed", "and nothing was lost");
}

#[tokio::test]
async fn health_readiness_and_description_need_no_key() {
    let server = Server::local().await;
    for (path, member) in [("healthz", "status"), ("readyz", "status"), ("openapi.json", "openapi")] {
        let page = server.visitor().get(&server.url(path)).await;
        assert_eq!(page.status, 200, "{path}");
        let body: Value = serde_json::from_str(&page.html).unwrap();
        assert!(body[member].is_string(), "{path}");
    }
}

#[tokio::test]
async fn r32_under_tls_browsers_are_told_to_stay_there() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer).over_tls()).await;
    let issued = server.handler().issue(&ask_for(&issuer, "ada")).await;
    assert!(issued.url.starts_with("https://"));
    let page = server.visitor().get(&issued.url).await;
    assert_eq!(page.headers["strict-transport-security"], "max-age=63072000");
    server.visitor().signed_in(issuer.token("ada")).complete(&issued.url, "wk-1").await;
}

/// A handler that hangs up over HTTP/2 resets its stream and keeps the connection.
#[tokio::test]
async fn a_handler_that_hung_up_over_http2_has_claimed_nothing() {
    let issuer = Issuer::in_file();
    let server = Server::start(Setup::proxy(&issuer).over_tls()).await;
    let ask = ask_for(&issuer, "ada");
    let mut round = ask.clone();
    round["protocolVersion"] = "2026-07-28".into();
    let first = server.handler().round(&round).await;
    round["requestState"] = first.body["result"]["requestState"].clone();
    round["waitSeconds"] = 50.into();
    let mut curl = tokio::process::Command::new("curl");
    curl.args(["--http2", "-sk", "--max-time", "1", "-w", "%{http_version}", "-o", "/dev/null"])
        .args(["-H", &format!("Authorization: Bearer {}", server.api_key())])
        .args(["-H", "Content-Type: application/json", "-d", &round.to_string(), &server.url("v1/rounds")]);
    let output = curl.output().await.expect("curl is needed");
    assert_eq!(output.status.code(), Some(28), "curl gave up waiting: {output:?}");
    let link = first.text_at("/result/inputRequests/sidegate/params/url");
    server.visitor().signed_in(issuer.token("ada")).complete(link, "wk-1").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.handler().state(first.text_at("/id")).await, "completed");
    assert_eq!(server.handler().round(&round).await.text_at("/credential/values/api_key"), "wk-1");
}

#[tokio::test]
async fn what_a_program_reads_is_not_kept_and_not_taken_for_anything_else() {
    let server = Server::local().await;
    let answers = [
        server.handler().post("v1/elicitations", &ask()).await,
        server.handler().get("v1/elicitations/none").await,
        server.handler().get("readyz").await,
    ];
    for answer in answers {
        assert_eq!(answer.headers["cache-control"], "no-store");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert!(answer.headers["content-type"].to_str().unwrap().starts_with("application/"));
        assert!(!answer.headers.contains_key("content-security-policy"), "that is for pages");
    }
}
