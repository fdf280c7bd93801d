//! The walk and the handler in the README, executed literally.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use super::harness::Server;

/// The blocks in `language` between the README's marks `<!-- name -->` and `<!-- end of name -->`.
fn blocks(name: &str, language: &str) -> String {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let (_, rest) = readme.split_once(&format!("<!-- {name} -->")).unwrap();
    let (part, _) = rest.split_once(&format!("<!-- end of {name} -->")).unwrap();
    let opening = format!("```{language}\n");
    part.split(&opening).skip(1).map(|block| block.split_once("```").unwrap().0).collect()
}

/// Calls the README's handler with arguments that stand in JSON beside `gate` and `apiKey`, and prints what it
/// returned or threw, as JSON.
async fn handle(server: &Server, key: &str, arguments: &Value) -> Value {
    let program = format!(
        r"
        class McpError extends Error {{
            constructor(code, message, data) {{ super(message); Object.assign(this, {{ code, data }}); }}
        }}
        const [gate, apiKey, more] = process.argv.slice(1);
        const {{ city, protocolVersion, requestState, inputResponses }} = JSON.parse(more);
        const [clientCapabilities, args] = [{{ elicitation: {{ url: {{}} }} }}, {{ city: city ?? 'Oslo' }}];
        const token = {{ iss: 'local', sub: 'me' }};
        const forecast = (args, key) => ({{ forecast: args.city, key }});
        async function handler() {{ {} }}
        handler().then(
            (returned) => ({{ returned: returned ?? null }}),
            ({{ code, message, data }}) => ({{ thrown: {{ code, message, data }} }}),
        ).then((end) => console.log(JSON.stringify(end)));
        ",
        blocks("handler", "js")
    );
    let mut node = Command::new("node");
    node.args(["-e", &program, "--", server.url("").trim_end_matches('/'), key, &arguments.to_string()])
        .stdin(Stdio::null());
    let output = node.output().await.unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn the_handler_of_the_readme_has_a_right_end_for_every_answer() {
    let server = Server::local().await;
    let key = server.api_key();

    let first = handle(&server, &key, &json!({"protocolVersion": "2026-07-28"})).await;
    let state = first["returned"]["requestState"].as_str().unwrap_or_else(|| panic!("{first}"));
    let link = first["returned"]["inputRequests"]["sidegate"]["params"]["url"].as_str().unwrap();
    let legacy = handle(&server, &key, &json!({"protocolVersion": "2025-11-25", "city": "Rome"})).await;
    assert_eq!(legacy["thrown"]["code"], -32042, "{legacy}");
    let prompt = &legacy["thrown"]["data"]["elicitations"][0];
    assert_eq!(prompt["mode"], "url", "{legacy}");

    let forged = json!({"protocolVersion": "2026-07-28", "requestState": format!("{state}x")});
    assert_eq!(handle(&server, &key, &forged).await["thrown"]["code"], -32602);
    let stranger = handle(&server, "sgk_unknown", &json!({"protocolVersion": "2026-07-28"})).await;
    let message = stranger["thrown"]["message"].as_str().unwrap_or_else(|| panic!("{stranger}"));
    assert!(message.starts_with("Sidegate: unauthorized: "), "{message}");

    server.visitor().complete(link, "wk-1").await;
    let accepted = json!({"sidegate": {"action": "accept"}});
    let retry = json!({"protocolVersion": "2026-07-28", "requestState": state, "inputResponses": accepted});
    let last = handle(&server, &key, &retry).await;
    assert_eq!(last["returned"], json!({"forecast": "Oslo", "key": "wk-1"}), "{last}");
    let again = handle(&server, &key, &retry).await;
    assert_eq!(again["returned"]["isError"], true, "{again}");
}

#[tokio::test]
async fn the_walk_of_the_readme_works_as_it_is_written() {
    let server = Server::local().await;
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(server.data(), folder.path().join("sidegate-data")).unwrap();
    let mut shell = Command::new("bash");
    shell
        .args(["-euo", "pipefail", "-c", &blocks("walk", "sh")])
        .current_dir(folder.path())
        .stdin(Stdio::null());
    let output = shell.output().await.unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let lines: Vec<&str> = out.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].contains(r#""state":"pending""#), "issue: {out}");
    assert_eq!(lines[1], "Local tools needs a secret from you", "open: {out}");
    assert!(lines[2].starts_with("303 ") && lines[2].ends_with("/done"), "submit: {out}");
    assert!(lines[3].contains(r#""state":"completed""#), "status: {out}");
    assert_eq!(lines[4], r#"{"credential":{"values":{"api_key":"wk-12345"}}}"#, "claim: {out}");
    assert!(lines[5].contains(r#""code":"already_claimed""#), "a second claim: {out}");
}
