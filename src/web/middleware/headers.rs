//! The headers of every answer: all of them for what a browser shows, two for what a program reads. A handler that sets
//! one itself keeps it.

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::web;

use crate::web::Site;

/// For everybody.
const ALWAYS: [(&str, &str); 2] = [("cache-control", "no-store"), ("x-content-type-options", "nosniff")];
/// For browsers.
const SHOWN: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    ),
    ("referrer-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-robots-tag", "noindex, nofollow"),
    (
        "permissions-policy",
        "accelerometer=(), autoplay=(), browsing-topics=(), camera=(), clipboard-read=(), \
         display-capture=(), encrypted-media=(), fullscreen=(), gamepad=(), geolocation=(), gyroscope=(), hid=(), \
         identity-credentials-get=(), idle-detection=(), local-fonts=(), magnetometer=(), microphone=(), midi=(), \
         otp-credentials=(), payment=(), picture-in-picture=(), publickey-credentials-create=(), \
         publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), usb=(), \
         window-management=(), xr-spatial-tracking=()",
    ),
];
/// Two years.
const HSTS: (&str, &str) = ("strict-transport-security", "max-age=63072000");

/// Adds the headers.
///
/// # Errors
/// As the handlers behind it.
pub async fn headers(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, actix_web::Error> {
    let https = request.app_data::<web::Data<Site>>().is_some_and(|site| site.is_https());
    let mut response = next.call(request).await?;
    let all = response.headers_mut();
    let shown = if is_json(all) { &[][..] } else { &SHOWN };
    for (name, value) in ALWAYS.iter().chain(shown).copied().chain(https.then_some(HSTS)) {
        let name = HeaderName::from_static(name);
        if !all.contains_key(&name) {
            all.insert(name, HeaderValue::from_static(value));
        }
    }
    Ok(response)
}

/// Whether a program reads this: JSON, which with `nosniff` no browser takes for anything else.
fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|content_type| {
        matches!(content_type.as_bytes(), b"application/json" | b"application/problem+json")
    })
}
