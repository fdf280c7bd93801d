//! A real browser: Chromium, driven by the scripts in `tests/browser`.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

/// Runs one script with `input`; what it returns. The test fails if the script does.
pub(crate) async fn run(script: &str, input: &Value) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let output = Command::new("node")
        .current_dir(folder)
        .args(["run.mjs", script])
        .arg(input.to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("node is needed; `tests/run` installs what the tests need");
    let (result, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}: {errors}\n{result}");
    serde_json::from_str(&result).unwrap_or_else(|_| panic!("{script} wrote: {result}\n{errors}"))
}
