//! The walk in the README, executed literally.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::harness::Server;

/// The shell blocks of the README between the marks of the walk.
fn walk() -> String {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let (_, rest) = readme.split_once("<!-- walk -->").unwrap();
    let (walk, _) = rest.split_once("<!-- end of walk -->").unwrap();
    walk.split("```sh\n").skip(1).map(|block| block.split_once("```").unwrap().0).collect()
}

#[tokio::test]
async fn the_walk_of_the_readme_works_as_it_is_written() {
    let server = Server::local().await;
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(server.data(), folder.path().join("sidegate-data")).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &walk()]).current_dir(folder.path()).stdin(Stdio::null());
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
