//! `sidegate demo`: the first thing that a new user runs.

use std::process::Stdio;
use std::time::Duration;

use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use super::harness::browser::run;
use super::harness::{Visitor, sidegate};

/// A demo that has printed its link.
struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    link: String,
    printed: String,
}

impl Demo {
    async fn start(arguments: &[&str]) -> Self {
        let mut command = sidegate();
        command.arg("demo").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut printed = String::new();
        let link = loop {
            let line = lines.next_line().await.unwrap().expect("the demo prints a link");
            printed += &line;
            if let Some(link) = line.trim().strip_prefix("http").filter(|_| line.contains("/e/")) {
                break format!("http{link}");
            }
        };
        Self { child, lines, link, printed }
    }

    /// Exit code, and all that was printed.
    async fn end(mut self) -> (i32, String) {
        let rest = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                self.printed += &line;
                self.printed.push('\n');
            }
            let mut errors = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut errors).await.unwrap();
            self.printed += &errors;
            self.child.wait().await.unwrap().code().unwrap()
        };
        let code = timeout(Duration::from_secs(30), rest).await.expect("the demo ends");
        (code, self.printed)
    }
}

#[tokio::test]
async fn a_person_in_chromium_enters_a_key_and_the_handler_receives_it() {
    let demo = Demo::start(&["--manual"]).await;
    let value = "wk-demo-0123456789";
    let seen = run("enter", &json!({"link": demo.link, "script": true, "value": value})).await;
    assert_eq!(seen["heading"], "Done");
    let (code, printed) = demo.end().await;
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("received `api_key`, 18 characters long"), "{printed}");
    assert!(!printed.contains(value), "the value is shown nowhere: {printed}");
}

#[rstest]
#[case::asked_to(&["--auto"])]
#[case::where_nobody_can_answer(&[])]
#[tokio::test]
async fn it_plays_the_person_too(#[case] arguments: &[&str]) {
    let demo = timeout(Duration::from_secs(20), Demo::start(arguments)).await.unwrap();
    let (code, printed) = demo.end().await;
    assert_eq!(code, 0, "{printed}");
    for step in [
        "person: opened the link",
        "person: entered a made-up key",
        "handler: received `api_key`",
        "handler: claimed once",
    ] {
        assert!(printed.contains(step), "{step}: {printed}");
    }
    assert!(!printed.contains("demo-"), "nor is a made-up value shown: {printed}");
}

#[tokio::test]
async fn a_decline_ends_it_with_its_own_code() {
    let demo = Demo::start(&["--manual"]).await;
    let url = reqwest::Url::parse(&demo.link).unwrap();
    assert_eq!(Visitor::new(&url).decline(&demo.link).await.status, 303);
    let (code, printed) = demo.end().await;
    assert_eq!(code, 3, "{printed}");
    assert!(
        printed.contains("sidegate: declined: You declined the request, so this was not done."),
        "{printed}"
    );
}

#[tokio::test]
async fn an_expiry_ends_it_with_its_own_code() {
    let demo = Demo::start(&["--manual", "--expires-in", "10"]).await;
    let (code, printed) = demo.end().await;
    assert_eq!(code, 4, "{printed}");
    assert!(
        printed.contains("sidegate: expired: The time for the request ran out, so this was not done."),
        "{printed}"
    );
}

#[tokio::test]
async fn ctrl_c_ends_it_with_its_own_code() {
    let demo = Demo::start(&["--manual"]).await;
    let pid = Pid::from_raw(i32::try_from(demo.child.id().unwrap()).unwrap()).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    kill_process(pid, Signal::INT).unwrap();
    let (code, printed) = demo.end().await;
    assert_eq!(code, 130, "{printed}");
    assert!(printed.contains("sidegate: stopped; the link is dead and nothing was kept"), "{printed}");
}
