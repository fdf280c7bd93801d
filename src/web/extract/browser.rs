//! What a request tells about the browser that made it.

use std::net::{IpAddr, Ipv4Addr};

use actix_web::HttpRequest;

use crate::identity::Browser;

const FORWARDED: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];

/// Hands the browser of `request` to `use_it`.
pub async fn with_browser<T>(request: &HttpRequest, use_it: impl AsyncFnOnce(&Browser<'_>) -> T) -> T {
    let header = |name: &str| -> Vec<&str> {
        // A value that is no text cannot be a token; it still counts as one that is there.
        request.headers().get_all(name).map(|value| value.to_str().unwrap_or("\u{fffd}")).collect()
    };
    // Two of one name: somebody has planted one of them.
    let cookie = |name: &str| -> Option<String> {
        let cookies = request.cookies().ok()?;
        let mut named = cookies.iter().filter(|cookie| cookie.name() == name);
        named.next().filter(|_| named.next().is_none()).map(|cookie| cookie.value().to_owned())
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
