//! Reads a body, up to a size and within a time.

use std::time::Duration;

use actix_web::dev::Payload;
use futures_util::{FutureExt as _, StreamExt as _};
use zeroize::Zeroizing;

use crate::web::problem::Problem;

/// Largest body of an API call, in bytes.
pub const API_LIMIT: usize = 64 * 1024;
/// How long a body may take to arrive.
const TIME: Duration = Duration::from_secs(10);

/// Reads the whole body. The copy that it returns is wiped when dropped; the web framework's own receive
/// buffers are not.
///
/// # Errors
/// [`Problem`] if it is larger than `limit`, too slow, or breaks off.
pub async fn read_body(
    payload: &mut Payload,
    announced: Option<usize>,
    limit: usize,
) -> Result<Zeroizing<Vec<u8>>, Problem> {
    if announced.is_some_and(|length| length > limit) {
        return Err(Problem::too_large(limit));
    }
    let reading = async {
        let mut body = Zeroizing::new(Vec::with_capacity(announced.unwrap_or(0).max(1024)));
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|_| Problem::malformed("body".to_owned(), "broke off"))?;
            if body.len() + chunk.len() > limit {
                return Err(Problem::too_large(limit));
            }
            if body.len() + chunk.len() > body.capacity() {
                // Grow by hand, so that the outgrown copy is wiped too.
                let mut larger = Vec::with_capacity(2 * (body.len() + chunk.len()));
                larger.extend_from_slice(&body);
                body = Zeroizing::new(larger);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    };
    tokio::time::timeout(TIME, reading).await.unwrap_or_else(|_| Err(Problem::too_slow()))
}

/// Tells whether a caller still waits for its answer.
///
/// With the connection of HTTP/1.1 the handler's future ends. In HTTP/2 it goes on, but a stream that was reset
/// makes what follows the body an error.
pub struct Presence(pub(super) Payload);

impl Presence {
    /// Whether the caller has gone.
    pub fn is_gone(&mut self) -> bool {
        matches!(self.0.next().now_or_never(), Some(Some(Err(_))))
    }
}

/// The length that the request announces.
#[must_use]
pub fn announced_length(request: &actix_web::HttpRequest) -> Option<usize> {
    request.headers().get(actix_web::http::header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
