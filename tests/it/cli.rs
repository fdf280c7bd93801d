//! The command line and the configuration: what is printed, and what stops a start.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rstest::rstest;
use serde_json::Value;
use tokio::time::timeout;

use super::harness::issuer::Issuer;
use super::harness::{Server, Setup, ask, sidegate};

/// Runs a command: exit code, standard output, standard error.
async fn run(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let output = sidegate().args(arguments).current_dir(folder).output();
    let output = timeout(Duration::from_secs(20), output).await.expect("the command ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A configuration that would start.
const GOOD: &str = r#"
[server]
public_url = "http://127.0.0.1:18020"
listen = "127.0.0.1:0"

[[clients]]
id = "weather"
name = "Weather tools"
api_key_digests = ["sha256:0000000000000000000000000000000000000000000000000000000000000000"]
identity = "me"

[identity.me]
source = "loopback"
"#;

#[rstest]
#[case::unknown_section("[serve]\n", "", "unknown field")]
#[case::unknown_key("[server]", "[server]\ncolour = 1", "`server.colour`")]
#[case::unknown_key_of_a_client("name = ", "colour = 1\nname = ", "colour")]
#[case::misspelt_source("\"loopback\"", "\"loop\"", "`identity.me.source`")]
#[case::no_client("[[clients]]", "[[operators]]", "unknown field")]
#[case::no_identity("identity = \"me\"", "", "client `weather` has no identity source")]
#[case::unknown_identity("identity = \"me\"", "identity = \"you\"", "add a section [identity.you]")]
#[case::unknown_kind("identity = \"me\"", "identity = \"me\"\nkinds = [\"magic\"]", "kinds")]
#[case::public_listener("127.0.0.1:0", "0.0.0.0:0", "can be reached by others without TLS")]
#[case::public_host_by_http(
    "http://127.0.0.1:18020",
    "http://gate.example.com",
    "plain HTTP with a public host; make it https"
)]
#[case::public_host_without_tls(
    "http://127.0.0.1:18020",
    "https://gate.example.com",
    "neither `server.tls` nor a proxy in `server.trusted_proxies`"
)]
#[case::loopback_behind_a_proxy(
    "listen =",
    "trusted_proxies = [\"127.0.0.1/32\"]\nlisten =",
    "identity source `me` is `loopback`"
)]
#[case::loopback_in_public(
    "http://127.0.0.1:18020\"",
    "https://gate.example.com\"\ntls = { certificate = \"c.pem\", key = \"k.pem\" }",
    "identity source `me` is `loopback`"
)]
#[case::query_in_the_url(":18020", ":18020/?a=b", "`server.public_url` must be an http or https URL")]
#[case::no_key(
    "api_key_digests = [\"sha256:0000000000000000000000000000000000000000000000000000000000000000\"]",
    "api_key_digests = []",
    "must list one key, or two while one is replaced"
)]
#[case::bad_digest(
    "sha256:0000000000000000000000000000000000000000000000000000000000000000",
    "sgk_plain",
    "api_key_digests"
)]
#[case::missing_key_file("[server]", "[keys]\nfile = \"none.toml\"\n[server]", "none.toml")]
#[case::missing_certificate(
    "listen =",
    "tls = { certificate = \"c.pem\", key = \"k.pem\" }\nlisten =",
    "`server.tls` is set, but `server.public_url` is http"
)]
#[case::unknown_store("[server]", "[store]\nurl = \"mysql://x\"\n[server]", "`store.url`")]
#[case::not_toml("[server]", "[server", "s.toml is not TOML: line 2, column 8: ")]
#[case::a_trail_of_no_time(
    "[server]",
    "[store]\nurl = \"redis://127.0.0.1\"\ntrail_retention = 0\n[server]",
    "`store.trail_retention` must be 86400 to 315360000 seconds"
)]
#[case::a_life_without_end(
    "[server]",
    "[lifetimes]\nretention = 9223372036854775807\n[server]",
    "`lifetimes.retention` must be 1 to 31104000 seconds"
)]
#[case::no_time_to_claim(
    "[server]",
    "[lifetimes]\nclaim_by = 0\n[server]",
    "`lifetimes.claim_by` must be 1 to 2592000 seconds"
)]
#[tokio::test]
async fn r38_an_unsafe_or_unknown_setting_stops_the_start(
    #[case] what: &str,
    #[case] instead: &str,
    #[case] sentence: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let config = if GOOD.contains(what) { GOOD.replacen(what, instead, 1) } else { format!("{what}{GOOD}") };
    std::fs::write(folder.path().join("s.toml"), &config).unwrap();
    for command in ["serve", "check"] {
        let (code, out, err) = run(&[command, "--config", "s.toml"], folder.path()).await;
        assert_eq!(code, 1, "{command}: {config}\n{out}{err}");
        assert!(err.starts_with("sidegate: ") && err.lines().count() == 1, "one sentence: {err}");
        assert!(err.contains(sentence), "{err}");
        assert!(!out.contains("listening"));
    }
}

/// A malformed setting may be a password.
#[rstest]
#[case::a_missing_quote("[store]\nurl = \"redis://:canary@h\n", &[], "line 2, column ")]
#[case::no_quotes("[store]\nurl = redis://:canary@h\n", &[], "line 2, column 7")]
#[case::a_section_in_a_variable("", &[("SIDEGATE_STORE", "redis://:canary@h")], "`store`: must be a section")]
#[case::another_type("[store]\nprefix = [\"canary\"]\n", &[], "`store.prefix`: cannot be used: expected a string")]
#[case::no_number("[lifetimes]\nretention = \"canary\"\n", &[], "`lifetimes.retention`: must be a whole number")]
#[case::none_of_a_few("[store]\ndurability = \"canary\"\n", &[], "`store.durability`: must be one of server, fsync")]
#[case::no_url("[server]\npublic_url = \"canary\"\n", &[], "`server.public_url`: relative URL without a base")]
#[case::no_address("", &[("SIDEGATE_SERVER__LISTEN", "canary")], "`server.listen`: invalid socket address syntax")]
#[case::no_network("[server]\ntrusted_proxies = [\"canary\"]\n", &[], "`server.trusted_proxies.0`: ")]
#[case::no_port("[store]\nurl = \"redis://:pw@h:canary\"\n", &[], "`store.url` must name")]
#[case::a_section_for_a_list("clients = \"canary\"\n", &[], "`clients`: must be a list")]
#[case::a_list_for_a_section("store = [\"canary\"]\n", &[], "`store`: must be a section")]
#[tokio::test]
async fn r36_a_malformed_setting_is_named_and_not_quoted(
    #[case] config: &str,
    #[case] variables: &[(&str, &str)],
    #[case] sentence: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.toml"), config).unwrap();
    let mut command = sidegate();
    command.args(["check", "--config", "s.toml"]).envs(variables.iter().copied());
    let output = command.current_dir(folder.path()).output().await.unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!output.status.success() && said.contains(sentence) && !said.contains("canary"), "{said}");
}

#[tokio::test]
async fn r38_a_key_file_that_others_can_read_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (code, ..) = run(&["keys", "new", "--file", "keys.toml"], folder.path()).await;
    assert_eq!(code, 0);
    let keys = folder.path().join("keys.toml");
    assert_eq!(std::fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(folder.path().join("s.toml"), format!("[keys]\nfile = \"keys.toml\"\n{GOOD}")).unwrap();
    let (code, out, _) = run(&["check", "--config", "s.toml"], folder.path()).await;
    assert_eq!(code, 0);
    assert!(
        out.contains("ok  configuration: 1 client(s)") && out.contains("ok  key ring: keys.toml"),
        "{out}"
    );
    for mode in [0o640, 0o604, 0o660] {
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(mode)).unwrap();
        for command in ["serve", "check"] {
            let (code, _, err) = run(&[command, "--config", "s.toml"], folder.path()).await;
            assert_eq!(
                (code, err.as_str()),
                (1, "sidegate: key file keys.toml can be read by others; run `chmod 600` on it\n")
            );
        }
    }
}

#[tokio::test]
async fn r38_a_local_service_does_not_listen_in_public() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(&["serve", "--listen", "0.0.0.0:0"], folder.path()).await;
    assert_eq!(code, 1);
    assert!(err.contains("`server.public_url` is needed with a listener that others can reach"), "{err}");
}

#[tokio::test]
async fn a_local_service_keeps_its_keys_to_itself_and_for_the_next_start() {
    let mut server = Server::local().await;
    for name in ["dev.json", "keys.toml"] {
        let mode = std::fs::metadata(server.data().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let known: Value =
        serde_json::from_slice(&std::fs::read(server.data().join("dev.json")).unwrap()).unwrap();
    assert_eq!(format!("{}/", known["url"].as_str().unwrap()), server.base().as_str());
    assert_eq!(known["clientId"], "local");
    let (key, operator) = (server.api_key(), server.operator_key());
    assert!(key.starts_with("sgk_") && operator.starts_with("sgo_"));
    server.stop().await;
    let again = server.start_again().await;
    assert_eq!((again.api_key(), again.operator_key()), (key, operator));
}

#[tokio::test]
async fn a_second_service_on_the_same_data_is_refused() {
    let server = Server::local().await;
    let data = server.data().display().to_string();
    let (code, _, err) = run(&["serve", "--listen", "127.0.0.1:0", "--data", &data], server.data()).await;
    assert_eq!(code, 1);
    assert!(err.starts_with("sidegate: ") && err.contains("sidegate.db"), "{err}");
    assert_eq!(server.handler().issue(&ask()).await.id.len(), 32, "the first goes on");
}

#[tokio::test]
async fn keys_are_made_once_and_rotated_to_the_front() {
    let folder = tempfile::tempdir().unwrap();
    let (_, made, _) = run(&["keys", "new", "--file", "k.toml"], folder.path()).await;
    let first = made.trim().rsplit(' ').next().unwrap().to_owned();
    let (code, _, err) = run(&["keys", "new", "--file", "k.toml"], folder.path()).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("k.toml exists already; add a key to it with `sidegate keys rotate --file k.toml`"),
        "{err}"
    );
    let (code, ..) = run(&["keys", "rotate", "--file", "k.toml"], folder.path()).await;
    assert_eq!(code, 0);
    let text = std::fs::read_to_string(folder.path().join("k.toml")).unwrap();
    let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id = ")).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[1].trim_matches('"'), first, "the new key stands first");
}

#[tokio::test]
async fn a_prepared_key_stands_last_and_is_the_one_that_comes_to_the_front() {
    let folder = tempfile::tempdir().unwrap();
    let keys = async |arguments: &[&str]| {
        let (code, out, err) =
            run(&[&["keys"], arguments, &["--file", "k.toml"]].concat(), folder.path()).await;
        let text = std::fs::read_to_string(folder.path().join("k.toml")).unwrap();
        let ids =
            text.lines().filter_map(|line| Some(line.strip_prefix("id = ")?.trim_matches('"').to_owned()));
        (code, out + &err, ids.collect::<Vec<_>>(), text.contains("prepared = true"))
    };
    let (_, _, made, _) = keys(&["new"]).await;
    let (code, said, ids, prepared) = keys(&["rotate", "--prepare"]).await;
    assert_eq!((code, ids.len(), &ids[0], prepared), (0, 2, &made[0], true));
    assert!(
        said.contains(&ids[1]) && said.contains("then run `sidegate keys rotate --file k.toml`"),
        "{said}"
    );
    let (code, said, ..) = keys(&["rotate", "--prepare"]).await;
    assert!(code == 1 && said.contains("prepared already"), "{said}");
    let (code, _, after, prepared) = keys(&["rotate"]).await;
    assert_eq!((code, after, prepared), (0, vec![ids[1].clone(), ids[0].clone()], false));
}

#[tokio::test]
async fn the_lines_for_the_configuration_can_be_used_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (_, client, _) = run(&["client", "new", "--id", "weather"], folder.path()).await;
    let (_, operator, _) = run(&["operator", "new", "--id", "ops"], folder.path()).await;
    let section =
        |printed: &str, name: &str| printed.split_once(&format!("[[{name}]]")).unwrap().1.to_owned();
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[identity.NAME]\nsource = \"loopback\"\n[[clients]]{}\n[[operators]]{}",
        section(&client, "clients"),
        section(&operator, "operators")
    );
    std::fs::write(folder.path().join("s.toml"), &config).unwrap();
    let (code, out, err) = run(&["check", "--config", "s.toml"], folder.path()).await;
    assert_eq!(code, 0, "{config}\n{err}");
    assert!(out.contains("1 client(s), 1 operator(s)"), "{out}");
}

#[tokio::test]
async fn links_are_listed_and_revoked() {
    let server = Server::local().await;
    let data = server.data().display().to_string();
    let none = run(&["links", "list", "--data", &data], server.data()).await;
    assert_eq!((none.0, none.1.as_str()), (0, "no links\n"));
    let (first, second) = (server.handler().issue(&ask()).await, server.handler().issue(&ask()).await);
    let (_, table, _) = run(&["links", "list", "--data", &data], server.data()).await;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.contains(&first.id) && table.contains("tools/call:forecast"));
    let (_, lines, _) = run(&["links", "list", "--json", "--data", &data], server.data()).await;
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["state"] == "pending"));

    let revoke = |more: Vec<String>| {
        let mut arguments = vec!["links".to_owned(), "revoke".to_owned(), "--data".to_owned(), data.clone()];
        arguments.extend(more);
        arguments
    };
    let call = async |more: &[&str]| {
        let arguments = revoke(more.iter().map(|part| (*part).to_owned()).collect());
        run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), server.data()).await
    };
    let one = call(&[&first.id, "--reason", "phishing"]).await;
    assert_eq!((one.0, one.1), (0, format!("revoked {}\n", first.id)));
    assert_eq!(server.handler().state(&first.id).await, "revoked");
    let all = call(&["--client", "local", "--reason", "phishing"]).await;
    assert_eq!((all.0, all.1.as_str()), (0, "revoked 1\n"));
    assert_eq!(server.handler().state(&second.id).await, "revoked");
    let (code, _, err) = call(&[&"0".repeat(32), "--reason", "phishing"]).await;
    assert_eq!((code, err.as_str()), (3, "sidegate: there is no such link\n"));
    let (code, _, err) = call(&["--reason", "everything"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("must say which to revoke"), "{err}");
    let (code, _, err) = call(&[&first.id, "--client", "local", "--reason", "both"]).await;
    assert_eq!((code, err.contains("not both")), (2, true), "{err}");
    let (code, _, err) = call(&["--issued-before", "yesterday", "--reason", "old"]).await;
    assert_eq!((code, err.contains("issuedBefore must be a moment such as")), (2, true), "{err}");
    let one = call(&["--issued-before", "2099-01-01T00:00:00Z", "--reason", "old", "--json"]).await;
    assert_eq!((one.0, one.1.as_str()), (0, "{\"revoked\":0}\n"));
}

#[tokio::test]
async fn a_link_is_shown_with_its_story() {
    let server = Server::local().await;
    let data = server.data().display().to_string();
    let issued = server.handler().issue(&ask()).await;
    server.visitor().complete(&issued.url, "wk-canary-3").await;
    server.handler().claim(&issued, None).await.ok();
    let show = async |id: &str, more: &[&str]| {
        run(&[&["links", "show", id, "--data", &data], more].concat(), server.data()).await
    };
    let (code, shown, _) = show(&issued.id, &[]).await;
    assert_eq!(code, 0);
    for line in ["state       claimed", "client      local", "operation   tools/call:forecast"] {
        assert!(shown.contains(line), "{shown}");
    }
    let story: Vec<_> = shown.lines().skip_while(|line| !line.is_empty()).skip(1).collect();
    let what: Vec<_> = story.iter().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(what, ["issued", "opened", "started", "completed", "claimed"]);
    assert!(story[0].ends_with("client local") && story[3].ends_with("person"), "{shown}");
    let (_, json, _) = show(&issued.id, &["--json"]).await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["state"], json["history"].as_array().unwrap().len()), (&Value::from("claimed"), 5));
    assert!(!shown.contains("wk-canary-3") && !json.to_string().contains("wk-canary-3"));
    let (code, _, err) = show(&"0".repeat(32), &[]).await;
    assert_eq!((code, err.as_str()), (3, "sidegate: there is no such link\n"));
    let (code, _, err) =
        show(&issued.id, &["--url", "http://127.0.0.1:9", "--operator-key-file", "dev.json"]).await;
    assert_eq!((code, err.contains("does not answer")), (1, true), "{err}");
}

#[tokio::test]
async fn r37_every_change_is_one_audit_event_and_verify_finds_what_was_tampered_with() {
    let issuer = Issuer::in_file();
    let mut server = Server::start(Setup::proxy(&issuer)).await;
    let mut ask = ask();
    ask["subject"] = serde_json::json!({"issuer": issuer.name(), "id": "ada"});
    let issued = server.handler().issue(&ask).await;
    server.visitor().signed_in(issuer.token("bob")).get(&issued.url).await;
    server.visitor().signed_in("nonsense").get(&issued.url).await;
    let ada = server.visitor().signed_in(issuer.token("ada"));
    assert_eq!(ada.post(&format!("{}/secret", issued.url), &[]).await.status, 403);
    ada.complete(&issued.url, "wk-1").await;
    server.handler().claim(&issued, Some("a")).await.ok();
    server.handler().claim(&issued, Some("a")).await.ok();
    server.handler().claim(&issued, Some("b")).await;
    let config = server.data().join("sidegate.toml").display().to_string();
    let data = server.data().display().to_string();
    let audit = async |verb: &str| {
        run(&["audit", verb, "--config", &config, "--data", &data], Path::new(&data)).await
    };
    let (code, exported, _) = audit("export").await;
    assert_eq!(code, 0);
    let events: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> = events
        .iter()
        .map(|event| {
            format!(
                "{} {} {}",
                event["actor"]["type"].as_str().unwrap(),
                event["what"].as_str().unwrap(),
                event["reason"].as_str().unwrap_or_default()
            )
        })
        .collect();
    let expected = [
        "client issued ",
        "visitor refused wrong_person",
        "visitor refused token_malformed",
        "visitor refused form_refused",
        "person opened ",
        "person started ",
        "person completed ",
        "client claimed ",
        "client replayed ",
        "client refused already_claimed",
    ];
    assert_eq!(told, expected);
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["number"], index + 1);
        assert_eq!(event["elicitation"], issued.id);
    }
    let (code, out, _) = audit("verify").await;
    let good = "10 entries, in order and unchanged: 1 to 10, whose hash is ";
    assert!(code == 0 && out.starts_with(good) && out.lines().count() == 1, "{out}");
    server.stop().await;

    let database = server.database();
    let pristine = std::fs::read(&database).unwrap();
    for (what, tamper) in [
        ("changed", "UPDATE trail SET event = (SELECT event FROM trail WHERE number = 3) WHERE number = 4"),
        ("removed", "DELETE FROM trail WHERE number = 5"),
        (
            "reordered",
            "UPDATE trail SET number = CASE number WHEN 2 THEN -3 WHEN 3 THEN -2 ELSE number END; UPDATE trail SET number = -number WHERE number < 0",
        ),
    ] {
        rusqlite::Connection::open(&database).unwrap().execute_batch(tamper).unwrap();
        let (code, _, err) = audit("verify").await;
        assert_eq!(code, 1, "{what}");
        assert!(
            err.contains("does not follow the one before it: the trail was changed there"),
            "{what}: {err}"
        );
        for side in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{side}", database.display()));
        }
        std::fs::write(&database, &pristine).unwrap();
    }
    assert_eq!(audit("verify").await.0, 0);
}

#[tokio::test]
async fn every_command_says_what_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let (code, help, _) = run(&["--help"], folder.path()).await;
    assert_eq!(code, 0);
    for command in ["serve", "demo", "check", "keys", "client", "operator", "links", "audit"] {
        assert!(help.contains(command), "{help}");
        assert_eq!(run(&[command, "--help"], folder.path()).await.0, 0);
    }
}
