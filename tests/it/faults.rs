//! What went wrong in peers, and must not here.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::harness::{Server, Setup, ask};

/// Another program holds the database for three seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r42_while_the_store_stalls_what_needs_no_store_is_unaffected() {
    let server = Server::local().await;
    let issued = server.handler().issue(&ask()).await;
    let page = server.visitor().get(&issued.url).await;
    let style = server.base().join(&page.attributes("link[rel=stylesheet]", "href")[0]).unwrap();

    let other = rusqlite::Connection::open(server.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting: Vec<_> = (0..64)
        .map(|_| {
            let handler = server.handler();
            tokio::spawn(async move { handler.issue(&ask()).await })
        })
        .collect();
    for _ in 0..30 {
        for path in [server.url("healthz"), style.to_string(), issued.url.clone()] {
            let page = timeout(Duration::from_secs(1), server.visitor().get(&path)).await;
            assert_eq!(page.expect("it does not wait for the store").status, 200, "{path}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(waiting.iter().all(|issue| !issue.is_finished()), "what changes something waits");
    other.execute_batch("ROLLBACK").unwrap();
    for issue in waiting {
        assert_eq!(issue.await.unwrap().id.len(), 32, "and is done when the store is back");
    }
}

/// Asks for this many ids that there are not, over one connection.
async fn ask_for_unknown(base: Url, key: String, first: usize, count: usize) {
    let host = base.authority();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let mut received = vec![0; 64 * 1024];
    for number in first..first + count {
        let id = format!("{number:032x}");
        let path =
            if number % 2 == 0 { format!("/e/{id}") } else { format!("/v1/elicitations/{id}?wait=50") };
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut length = 0;
        while !is_whole(&received[..length]) {
            let read = stream.read(&mut received[length..]).await.unwrap();
            assert!(read > 0);
            length += read;
        }
        assert!(received.starts_with(b"HTTP/1.1 404"), "{}", String::from_utf8_lossy(&received[..length]));
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(answer) else { return false };
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    body.len() >= length.parse::<usize>().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r43_a_hundred_thousand_unknown_ids_leave_no_memory_behind() {
    const BATCH: usize = 25_000;
    let setup = Setup::local()
        .with("SIDEGATE_LIMITS__REQUESTS_PER_SECOND_PER_ADDRESS", "1000000")
        .with("SIDEGATE_LIMITS__REQUESTS_PER_SECOND_PER_CLIENT", "1000000");
    let server = Arc::new(Server::start(setup).await);
    let batch = async |number: usize| {
        let share = BATCH / 10;
        let asks: Vec<_> = (0..10)
            .map(|part| {
                let first = number * BATCH + part * share;
                tokio::spawn(ask_for_unknown(server.base().clone(), server.api_key(), first, share))
            })
            .collect();
        for ask in asks {
            ask.await.unwrap();
        }
    };
    // The first quarter brings the buffers to their size.
    batch(0).await;
    let before = server.memory();
    for number in 1..4 {
        batch(number).await;
    }
    let after = server.memory();
    // A lock or a listener an id would be some hundred bytes each, for 75,000 of them.
    assert!(after < before + 4 * 1024, "{before} KiB, then {after} KiB");
}
