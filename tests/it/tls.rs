//! TLS: what is shown, how it is renewed, and who may come to a listener of the API's own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rstest::rstest;
use serde_json::json;
use tokio::task::JoinSet;

use super::harness::issuer::Issuer;
use super::harness::server::free_port;
use super::harness::{Handler, Server, Setup, eventually, sidegate};

/// A certificate for loopback that nobody vouches for, PEM, and its key.
fn made(change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    change(&mut params);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn expired(params: &mut CertificateParams) {
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
}

/// Puts a certificate and its key where the service reads them.
fn put(folder: &Path, (certificate, key): &(String, String)) {
    std::fs::write(folder.join("key.pem"), key).unwrap();
    std::fs::write(folder.join("certificate.pem"), certificate).unwrap();
}

/// A client that takes this certificate and no other, and keeps no connection.
fn trusting(certificate: &str) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).tls_certs_only([root]).build().unwrap()
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_and_no_request_fails_meanwhile() {
    let server = Server::start(Setup::proxy(&Issuer::in_file()).over_tls()).await;
    let health = server.url("healthz");
    let (failed, done, over) =
        (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let mut load = JoinSet::new();
    for _ in 0..4 {
        let (health, failed, done, over) = (health.clone(), failed.clone(), done.clone(), over.clone());
        load.spawn(async move {
            let any = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0);
            let any = any.tls_danger_accept_invalid_certs(true).build().unwrap();
            while !over.load(Ordering::Relaxed) {
                let answered = any.get(&health).send().await.is_ok_and(|answer| answer.status() == 200);
                (if answered { &done } else { &failed }).fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let old = std::fs::read_to_string(server.data().join("certificate.pem")).unwrap();
    assert!(trusting(&old).get(&health).send().await.is_ok());
    let renewed = made(|_| ());
    put(server.data(), &renewed);
    let client = trusting(&renewed.0);
    eventually("shown", async || client.get(&health).send().await.is_ok().then_some(())).await;
    assert!(trusting(&old).get(&health).send().await.is_err());

    // What is not good changes nothing, and is said once.
    put(server.data(), &made(expired));
    eventually("said", async || server.log().contains("has expired; renew the certificate").then_some(()))
        .await;
    std::fs::write(server.data().join("key.pem"), "no key").unwrap();
    put(server.data(), &(made(|_| ()).0, made(|_| ()).1));
    eventually("said", async || server.log().contains("does not belong to the private key").then_some(()))
        .await;
    assert!(client.get(&health).send().await.is_ok());
    over.store(true, Ordering::Relaxed);
    load.join_all().await;
    assert_eq!(failed.load(Ordering::Relaxed), 0, "of {}", done.load(Ordering::Relaxed));
    assert!(done.load(Ordering::Relaxed) > 50);
}

#[rstest]
#[case::expired(made(expired), "certificate.pem: has expired; renew the certificate")]
#[case::mismatched((made(|_| ()).0, made(|_| ()).1), "certificate.pem: does not belong to the private key")]
#[case::no_certificate((String::new(), made(|_| ()).1), "certificate.pem: must be a readable PEM file with a certificate chain")]
#[case::no_key((made(|_| ()).0, "no key".to_owned()), "key.pem: must be a readable PEM file with a private key")]
#[case::future(made(|params| params.not_before = rcgen::date_time_ymd(2090, 1, 1)), "certificate.pem: does not count yet")]
#[tokio::test]
async fn r38_a_certificate_that_is_not_good_stops_the_start(
    #[case] files: (String, String),
    #[case] sentence: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), &files);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut serve = sidegate();
    serve.arg("serve").arg("--data").arg(folder.path()).args(["--listen", "127.0.0.1:0"]);
    let tls = format!("{{certificate={:?}, key={:?}}}", path("certificate.pem"), path("key.pem"));
    let output = serve.env("SIDEGATE_SERVER__TLS", tls).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains(sentence), "{said}");
}

#[tokio::test]
async fn the_api_may_have_a_listener_of_its_own_that_demands_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let authority = |name: &str| {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, others) = (authority("ours.example"), authority("others.example"));
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, ours.pem()).unwrap();
    let port = free_port();
    let section = format!("[api]\nlisten = \"127.0.0.1:{port}\"\nclient_ca = \"{}\"\n", ca.display());
    let server = Server::start(Setup::proxy(&Issuer::in_file()).over_tls().and(&section)).await;

    let identity = |issuer: &CertifiedIssuer<'_, KeyPair>| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["mcp.example".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, issuer).unwrap();
        reqwest::Identity::from_pem(format!("{}{}", key.serialize_pem(), certificate.pem()).as_bytes())
            .unwrap()
    };
    let call = async |identity: Option<reqwest::Identity>, path: &str| {
        let client = reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true);
        let client = identity.map_or_else(
            || reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true),
            |identity| client.identity(identity),
        );
        let request = client.build().unwrap().get(format!("https://127.0.0.1:{port}/{path}"));
        request.bearer_auth(server.api_key()).send().await.map(|answer| answer.status().as_u16())
    };
    let unknown = format!("v1/elicitations/{}", "0".repeat(32));
    assert_eq!(call(Some(identity(&ours)), &unknown).await.unwrap(), 404);
    assert_eq!(call(Some(identity(&ours)), "openapi.json").await.unwrap(), 200);
    assert_eq!(call(Some(identity(&ours)), "healthz").await.unwrap(), 200);
    assert!(call(None, &unknown).await.is_err());
    assert!(call(Some(identity(&others)), &unknown).await.is_err());
    // The API is there alone, and alone there.
    assert_eq!(call(Some(identity(&ours)), &format!("e/{}", "0".repeat(32))).await.unwrap(), 404);
    let elsewhere = server.handler().post("v1/rounds", &json!({})).await;
    assert_eq!(elsewhere.problem(), (404, "not_found"));
    let page = server.visitor().get(&server.url(&format!("e/{}", "0".repeat(32)))).await;
    assert_eq!((page.status.as_u16(), page.heading().as_str()), (404, "There is nothing here"));
    assert_eq!(Handler::new(server.base().clone(), "").get("healthz").await.status, 200);
}

#[rstest]
#[case::without_tls(
    "[api]\nlisten = \"127.0.0.1:0\"\nclient_ca = \"/nowhere\"\n",
    "`api.client_ca` needs `server.tls`"
)]
#[case::open("[api]\nlisten = \"0.0.0.0:0\"\n", "`api.listen` can be reached by others without TLS")]
#[tokio::test]
async fn r38_a_listener_of_the_api_that_is_not_safe_stops_the_start(
    #[case] section: &str,
    #[case] sentence: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sidegate.toml");
    let digest = sidegate::api_key::KeyDigest::of_text("sgk_any");
    let client = format!(
        "[[clients]]\nid = \"a\"\nname = \"A\"\nidentity = \"b\"\napi_key_digests = [\"{digest}\"]\n[identity.b]\nsource = \"loopback\"\n"
    );
    std::fs::write(&file, client + section).unwrap();
    let mut serve = sidegate();
    serve.arg("serve").arg("--data").arg(folder.path()).arg("--config").arg(&file);
    let output = serve.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains(sentence), "{said}");
}
