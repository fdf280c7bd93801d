//! As little of an HTTP/1.1 client as a load needs: one connection, kept open, one request at a time.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection to a service.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// What was answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, received: Vec::with_capacity(8192) }
    }

    /// Sends a whole request and reads the whole answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Answer {
        self.stream.write_all(request).await.unwrap();
        loop {
            if let Some(answer) = self.take_answer() {
                return answer;
            }
            let read = self.stream.read_buf(&mut self.received).await.unwrap();
            assert!(read > 0, "the service closed the connection");
        }
    }

    fn take_answer(&mut self) -> Option<Answer> {
        let head = self.received.windows(4).position(|part| part == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(&self.received[..head]).unwrap();
        let status = text[9..12].parse().unwrap();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        if self.received.len() < head + length {
            return None;
        }
        let body = self.received[head..head + length].to_vec();
        self.received.drain(..head + length);
        Some(Answer { status, body })
    }
}

/// A request as it goes over the wire.
pub(crate) fn request(method: &str, path: &str, host: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
