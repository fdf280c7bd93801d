//! The way to a collector of traces (OTLP over HTTP): our own HTTP client, on a thread of its own, since traces are handed
//! over outside of the requests that they are about.

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use tokio::runtime::{Builder, Handle};

use super::UpstreamError;
use super::http::plain;

/// Hands over traces. Its thread ends with the process.
#[derive(Debug)]
pub struct Collector {
    client: reqwest::Client,
    runtime: Handle,
}

impl Collector {
    /// A way to any collector.
    ///
    /// # Errors
    /// [`UpstreamError::Client`].
    pub fn new() -> Result<Self, UpstreamError> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|_| UpstreamError::Client)?;
        let handle = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Ok(Self { client: plain()?, runtime: handle })
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = self.client.execute(reqwest::Request::try_from(request)?);
        let answer = async move {
            let answer = request.await?;
            let (status, body) = (answer.status(), answer.bytes().await?);
            Ok::<_, reqwest::Error>((status, body))
        };
        let (status, body) = self.runtime.spawn(answer).await??;
        Ok(Response::builder().status(status.as_u16()).body(body)?)
    }
}
