//! What is asked of a server before anything is entrusted to it, and how one gets in.

use std::time::Duration;

use rstest::rstest;

use crate::harness::redis::{ALWAYS, Cluster, Program, Redis};
use crate::harness::{Fleet, Server, Setup, ask, eventually, sidegate};

/// Starts or checks a service whose store is at this URL: exit code, output, errors. `serve` is ended once it listens.
async fn run(command: &str, url: &str, settings: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command_line = sidegate();
    command_line.arg(command).arg("--data").arg(folder.path()).env("SIDEGATE_STORE__URL", url);
    if command == "serve" {
        command_line.args(["--listen", "127.0.0.1:0"]);
    }
    let output =
        tokio::time::timeout(Duration::from_secs(20), command_line.envs(settings.iter().copied()).output());
    let output = output.await.expect("it refuses to start").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const FSYNC: (&str, &str) = ("SIDEGATE_STORE__DURABILITY", "fsync");

#[rstest]
#[case::it_evicts(
    Program::Redis, &["--maxmemory-policy", "volatile-lru"], &[],
    "may throw pending links and claimed outcomes away when its memory is full (maxmemory-policy volatile-lru); set it to noeviction"
)]
#[case::no_file(
    Program::Valkey, &[], &[FSYNC], "but the server keeps no append-only file; set `appendonly yes` there"
)]
#[case::an_old_server_that_does_not_wait(
    Program::Redis, &["--appendonly", "yes"], &[FSYNC], "before version 7.2 needs `appendfsync always`"
)]
#[tokio::test]
async fn a_server_that_would_lose_what_was_promised_is_refused(
    #[case] program: Program,
    #[case] server: &[&str],
    #[case] settings: &[(&str, &str)],
    #[case] sentence: &str,
) {
    let redis = Redis::start(program, server).await;
    for command in ["check", "serve"] {
        let (code, out, err) = run(command, &redis.url(), settings).await;
        assert_eq!(code, Some(1), "{command}: {out}{err}");
        let last = err.lines().last().unwrap();
        assert!(last.contains(sentence) && last.starts_with("sidegate: "), "{command}: {err}");
        assert!(!out.contains("listening"));
    }
}

#[rstest]
#[case(Program::Redis, &["--maxmemory-policy", "allkeys-lru"], &[("SIDEGATE_STORE__ALLOW_EVICTION", "true")],
    &["Redis 7.0", "no append-only file", "maxmemory-policy is allkeys-lru: when its memory is full, pending links", "no replica"])]
#[case(Program::Redis, &["--appendonly", "yes", "--appendfsync", "always"], &[FSYNC],
    &["appendfsync is always: what was acknowledged survives", "noeviction"])]
#[case(Program::Valkey, &["--appendonly", "yes"], &[FSYNC],
    &["Valkey 9", "appendfsync is everysec: if its machine crashes, up to two seconds", "noeviction"])]
#[tokio::test]
async fn check_says_what_can_be_lost(
    #[case] program: Program,
    #[case] server: &[&str],
    #[case] settings: &[(&str, &str)],
    #[case] sentences: &[&str],
) {
    let redis = Redis::start(program, server).await;
    let (code, out, err) = run("check", &redis.url(), settings).await;
    assert_eq!(code, Some(0), "{out}{err}");
    for sentence in sentences {
        assert!(out.contains(sentence), "{sentence}: {out}");
    }
}

#[rstest]
#[case("redis://127.0.0.1:1,127.0.0.1:2", "names several nodes")]
#[case("redis+sentinel://127.0.0.1:1", "must end with the name under which the Sentinels watch")]
#[case("redis+cluster://127.0.0.1:1/2", "on a Cluster nothing")]
#[case("redis+other://127.0.0.1:1", "must begin with redis://")]
#[case("redis://127.0.0.1:port", "at least one node as host or host:port")]
#[case("redis://:secret-word%FF@127.0.0.1:1", "not percent-encoded UTF-8")]
#[tokio::test]
async fn an_address_that_cannot_be_right_is_refused_without_being_repeated(
    #[case] url: &str,
    #[case] sentence: &str,
) {
    let (code, out, err) = run("check", url, &[]).await;
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.contains("`store.url` ") && err.contains(sentence), "{err}");
    assert!(!err.contains("secret-word"), "{err}");
}

#[tokio::test]
async fn check_says_that_a_server_cannot_be_reached() {
    let mut redis = Redis::start(Program::Redis, &[]).await;
    let url = redis.url();
    redis.crash().await;
    let (code, _, err) = run("check", &url, &[]).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("Redis cannot be reached"), "{err}");
}

/// With `appendfsync no` the server writes to its disk when it likes, and confirms nothing meanwhile.
#[tokio::test]
async fn a_commit_that_the_disk_does_not_confirm_is_no_commit_and_the_same_attempt_may_repeat_it() {
    let redis = Redis::start(Program::Valkey, &["--appendonly", "yes"]).await;
    let setup = Setup::local().with(FSYNC.0, FSYNC.1).with("SIDEGATE_STORE__URL", redis.url());
    let server = Server::start(setup).await;
    let handler = server.handler();
    let issued = handler.issue(&ask()).await;
    server.visitor().complete(&issued.url, "wk-1").await;

    redis.ask::<String>(&["CONFIG", "SET", "appendfsync", "no"]).await;
    let unconfirmed = handler.claim(&issued, Some("order-1")).await;
    assert_eq!(unconfirmed.problem(), (503, "unavailable"), "{unconfirmed:?}");
    assert!(!unconfirmed.text.contains("wk-1"));
    redis.ask::<String>(&["CONFIG", "SET", "appendfsync", "everysec"]).await;
    let confirmed = eventually("it is confirmed again", async || {
        let reply = handler.claim(&issued, Some("order-1")).await;
        reply.status.is_success().then_some(reply)
    })
    .await;
    assert_eq!(confirmed.text_at("/credential/values/api_key"), "wk-1");
    assert_eq!(handler.claim(&issued, Some("order-2")).await.problem(), (409, "already_claimed"));
}

/// The commands of docs/SCALING.md that make the user, for this prefix: one for every server, one more for a Cluster.
fn documented_user(prefix: &str) -> Vec<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/SCALING.md")).unwrap();
    let lines = page.lines().filter(|line| line.starts_with("ACL SETUSER sidegate "));
    let fitted =
        |line: &str| line.replace(">PASSWORD", ">open-sesame").replace("sidegate:", &format!("{prefix}:"));
    lines.map(fitted).collect()
}

/// What is forbidden is known before it is needed, and what cannot be done whole is not done in part.
#[tokio::test]
async fn r40_a_user_that_may_not_do_everything_is_noticed_and_consumes_nothing() {
    let redis = Redis::start(Program::Redis, &[]).await;
    let user = documented_user("sidegate").remove(0);
    redis.ask::<String>(&words(&user)).await;
    let url = format!("redis://sidegate:open-sesame@127.0.0.1:{}", redis.port());
    let server = Server::start(Setup::local().with("SIDEGATE_STORE__URL", &url)).await;
    let handler = server.handler();
    for (taken, given, said) in
        [("resetchannels", "&sidegate:*", "channel"), ("-zadd", "+zadd", "docs/SCALING.md")]
    {
        let issued = handler.issue(&ask()).await;
        server.visitor().complete(&issued.url, "wk-1").await;
        redis.ask::<String>(&["ACL", "SETUSER", "sidegate", taken]).await;
        let claimed = handler.claim(&issued, None).await;
        assert_eq!(claimed.problem(), (503, "unavailable"), "{taken}: {claimed:?}");
        assert_eq!(handler.get("readyz").await.status, 503, "{taken}");
        let (code, out, err) = run("check", &url, &[]).await;
        assert!(code == Some(1) && err.contains("`store.url`") && err.contains(said), "{taken}: {out}{err}");
        redis.ask::<String>(&["ACL", "SETUSER", "sidegate", given]).await;
        eventually("it is ready", async || (handler.get("readyz").await.status == 200).then_some(())).await;
        if taken == "resetchannels" {
            let claimed = handler.claim(&issued, None).await;
            assert_eq!(claimed.text_at("/credential/values/api_key"), "wk-1");
        }
    }
}

/// What an operator who wrote the wrong URL is told.
#[tokio::test]
async fn a_server_of_another_sort_than_the_url_says_is_named() {
    let (one, node) = (
        Redis::start(Program::Redis, &[]).await,
        Redis::start(Program::Redis, &["--cluster-enabled", "yes"]).await,
    );
    let (one, node) = (one.port(), node.port());
    let folder = tempfile::tempdir().unwrap();
    let secure = Redis::over_tls(folder.path()).await;
    for (url, sentence) in [
        (format!("redis://127.0.0.1:{node}"), "this is a node of a Cluster; write redis+cluster://"),
        (format!("redis+cluster://127.0.0.1:{one}"), "this is one server and no Cluster; write redis://"),
        (format!("redis+sentinel://127.0.0.1:{one}/gate"), "this is no Sentinel; write redis://"),
        (format!("redis://127.0.0.1:{one}/99"), "must be one of the server's databases"),
        (format!("rediss://127.0.0.1:{one}"), "is this its TLS port"),
        (format!("redis://127.0.0.1:{}", secure.port()), "if this is a TLS port, write `rediss`"),
        (format!("redis://nobody:x@127.0.0.1:{one}"), "look at `store.username` and `store.password_file`"),
    ] {
        let (code, _, err) = run("check", &url, &[]).await;
        assert!(code == Some(1) && err.contains("`store.url`") && err.contains(sentence), "{url}: {err}");
    }
}

fn words(command: &str) -> Vec<&str> {
    command.split_whitespace().collect()
}

#[tokio::test]
async fn on_a_cluster_with_the_documented_user() {
    let cluster = Cluster::start(&ALWAYS).await;
    for command in documented_user("sidegate") {
        for node in &cluster.nodes {
            assert_eq!(node.ask::<String>(&words(&command)).await, "OK");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "open-sesame\n").unwrap();
    let setup = Setup::local()
        .with(FSYNC.0, FSYNC.1)
        .with("SIDEGATE_STORE__USERNAME", "sidegate")
        .with("SIDEGATE_STORE__PASSWORD_FILE", password.display().to_string());
    let fleet = Fleet::at_url(&cluster.url(), setup).await;
    for number in 0..10 {
        let issued = fleet.at(0).handler().issue(&ask()).await;
        fleet.at(1).visitor().complete(&fleet.link(&issued.url, 1), "wk-1").await;
        let claimed = fleet.at(number).handler().claim(&issued, None).await;
        assert_eq!(claimed.text_at("/credential/values/api_key"), "wk-1");
    }
    assert!(fleet.at(0).log().contains("appendfsync is always"), "{}", fleet.at(0).log());
}

#[tokio::test]
async fn over_tls_with_a_certificate_a_user_a_database_and_a_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Redis::over_tls(folder.path()).await;
    let [certificate, key, password] =
        ["certificate.pem", "key.pem", "password"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&password, "open-sesame\n").unwrap();
    let ask_tls = async |words: &[&str]| {
        let mut cli = tokio::process::Command::new("redis-cli");
        cli.args(["--tls", "--cacert", &certificate, "--cert", &certificate, "--key", &key, "-n", "3"]);
        let output = cli.args(["-p", &redis.port().to_string()]).args(words).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask_tls(&words(&documented_user("team-a")[0])).await.trim(), "OK");

    let url = format!("rediss://127.0.0.1:{}/3", redis.port());
    let setup = Setup::local()
        .with("SIDEGATE_STORE__URL", url)
        .with("SIDEGATE_STORE__PREFIX", "team-a")
        .with("SIDEGATE_STORE__USERNAME", "sidegate")
        .with("SIDEGATE_STORE__PASSWORD_FILE", password)
        .with("SIDEGATE_STORE__TLS__CA", certificate.clone())
        .with("SIDEGATE_STORE__TLS__CERTIFICATE", certificate.clone())
        .with("SIDEGATE_STORE__TLS__KEY", key.clone());
    let first = Server::start(setup).await;
    let second = first.beside().await;
    let issued = first.handler().issue(&ask()).await;
    let poll = {
        let (handler, id) = (second.handler(), issued.id.clone());
        tokio::spawn(async move { handler.get(&format!("v1/elicitations/{id}?wait=50")).await })
    };
    first.visitor().complete(&issued.url, "wk-1").await;
    let reply = tokio::time::timeout(Duration::from_secs(10), poll).await.expect("woken").unwrap();
    assert_eq!(reply.text_at("/state"), "completed");
    assert_eq!(second.handler().claim(&issued, None).await.text_at("/credential/values/api_key"), "wk-1");
    let keys = ask_tls(&["KEYS", "*"]).await;
    assert!(keys.lines().count() > 5 && keys.lines().all(|key| key.starts_with("team-a:")), "{keys}");
    assert_eq!(first.handler().get("readyz").await.status, 200);
    assert!(!first.log().contains("open-sesame"));
}
