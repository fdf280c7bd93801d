//! The presets, and what of a provider's configuration stops the start.

use std::fmt::Write as _;

use rstest::rstest;

use super::harness::sidegate;

/// A configuration with this provider: the exit code of `check`, and what it said.
async fn check(provider: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let (secret, file) = (folder.path().join("secret"), folder.path().join("sidegate.toml"));
    std::fs::write(&secret, "a client's secret").unwrap();
    let digest = sidegate::api_key::KeyDigest::of_text("sgk_any");
    let mut text = format!(
        "[[clients]]\nid = \"a\"\nname = \"A\"\nidentity = \"b\"\napi_key_digests = [\"{digest}\"]\n[identity.b]\nsource = \"loopback\"\n"
    );
    let _ = write!(
        text,
        "[[providers]]\nid = \"p\"\nclient_id = \"c\"\nclient_secret_file = \"{}\"\n{provider}\n",
        secret.display()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = sidegate();
    command.arg("check").arg("--config").arg(&file).arg("--data").arg(folder.path());
    let output = command.output().await.unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

/// Whether it is a provider's fault is not known here: nobody answers. But its settings are accepted.
#[rstest]
#[tokio::test]
async fn every_preset_can_be_used_as_it_is(
    #[values(
        "github",
        "google",
        "slack",
        "entra",
        "atlassian",
        "notion",
        "linear",
        "salesforce",
        "hubspot",
        "discord",
        "gitlab",
        "zoom",
        "dropbox",
        "stripe"
    )]
    preset: &str,
) {
    let (_, said) = check(&format!("preset = \"{preset}\"\nclients = 1")).await;
    assert!(said.contains("unknown field `clients`"), "{said}");
    let (_, said) = check(&format!("preset = \"{preset}\"\nid = \"p\"")).await;
    assert!(said.contains("duplicate key"), "{said}");
    let (_, said) =
        check(&format!("preset = \"{preset}\"\nscopes = []\nauthorization_endpoint = \"http://a.example/\""))
            .await;
    assert!(said.contains("`authorization_endpoint` must be an https URL"), "{said}");
}

#[rstest]
#[case::unknown_preset("preset = \"nobody\"", "`preset` must be one of")]
#[case::nowhere("scopes = []", "must say where it is")]
#[case::variable_strict(
    "preset = \"salesforce\"\nvariables = { host = \"evil.example/?x=acme.my.salesforce.com\" }",
    "must match"
)]
#[case::variable_unused("preset = \"github\"\nvariables = { host = \"a\" }", "`variables.host` is not used")]
#[case::r14_state(
    "preset = \"github\"\nparameters = { state = \"x\" }",
    "`parameters.state` is set by Sidegate alone"
)]
#[case::r14_challenge(
    "preset = \"github\"\nparameters = { code_challenge = \"x\" }",
    "`parameters.code_challenge`"
)]
#[case::r14_in_the_url(
    "token_endpoint = \"https://a.example/t\"\nauthorization_endpoint = \"https://a.example/a?redirect_uri=x\"",
    "the query of `authorization_endpoint`"
)]
#[case::plain_http("issuer = \"http://a.example\"", "`issuer` must be an https URL")]
#[case::wrong_type("preset = \"github\"\npkce = \"yes\"", "`pkce`")]
#[case::signed_by_nobody("preset = \"github\"\njarm = true", "`jarm` needs `issuer`")]
#[tokio::test]
async fn r14_r38_a_provider_that_cannot_be_right_stops_the_start(
    #[case] provider: &str,
    #[case] sentence: &str,
) {
    let (code, said) = check(provider).await;
    assert!(code == 1 && said.contains(sentence), "{said}");
}
