//! What a request tells about the browser that made it.

use std::net::{IpAddr, Ipv4Addr};

use actix_web::HttpRequest;
use actix_web::http::header::{COOKIE, HeaderValue};

use crate::identity::Browser;

const FORWARDED: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];

/// Hands the browser of `request` to `use_it`.
pub async fn with_browser<T>(request: &HttpRequest, use_it: impl AsyncFnOnce(&Browser<'_>) -> T) -> T {
    let header = |name: &str| -> Vec<&str> {
        // A value that is no text cannot be a token; it still counts as one that is there.
        request.headers().get_all(name).map(|value| value.to_str().unwrap_or("\u{fffd}")).collect()
    };
    // By their bytes: a name that is only written as one of ours is not guarded by the browser as ours are
    // (`__Host-`). Two of one name: somebody has planted one of them.
    let cookie = |name: &str| -> Option<String> {
        let headers = request.headers().get_all(COOKIE).map(HeaderValue::as_bytes);
        let pairs = headers.flat_map(|header| header.split(|byte| *byte == b';'));
        let mut values = pairs.filter_map(|pair| {
            let (key, value) = pair.trim_ascii().split_at_checked(name.len())?;
            value.strip_prefix(b"=").filter(|_| key == name.as_bytes())
        });
        let value = values.next().filter(|_| values.next().is_none())?;
        std::str::from_utf8(value).ok().map(str::to_owned)
    };
    let browser = Browser {
        // A connection without an address is none from this computer.
        peer: request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip()),
        forwarded: FORWARDED.iter().any(|name| request.headers().contains_key(*name)),
        header: &header,
        cookie: &cookie,
    };
    use_it(&browser).await
}
