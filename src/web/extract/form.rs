//! A submitted form of one of our pages, and whether the browser sent it from there.

use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::http::header::ORIGIN;
use url::Url;
use zeroize::Zeroizing;

use super::body::{announced_length, read_body};
use crate::flow::form::FormProof;
use crate::web::problem::Problem;

/// What was entered. Wiped when dropped.
pub struct Form(Vec<(String, Zeroizing<String>)>);

impl Form {
    /// Reads a form of at most `limit` bytes.
    ///
    /// # Errors
    /// [`Problem`] if it is too large, too slow, or not UTF-8.
    pub async fn read(request: &HttpRequest, payload: &mut Payload, limit: usize) -> Result<Self, Problem> {
        let body = read_body(payload, announced_length(request), limit).await?;
        let fields: Vec<_> = form_urlencoded::parse(&body)
            .map(|(name, value)| (name.into_owned(), Zeroizing::new(value.into_owned())))
            .collect();
        // What is not UTF-8 was replaced by this character; a secret must not be changed in silence.
        if fields.iter().any(|(_, value)| value.contains(char::REPLACEMENT_CHARACTER)) {
            return Err(Problem::malformed("body".to_owned(), "must be a form in UTF-8"));
        }
        Ok(Self(fields))
    }

    /// The value of the first field with this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Every field, name and value.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The proof that the form came with, if it has one.
    #[must_use]
    pub fn proof(&self) -> Option<FormProof> {
        let text = |name| self.value(name).map(str::to_owned);
        Some(FormProof { render: text("_render")?, token: text("_token")? })
    }
}

/// Whether a browser sent this from a page of ours: by Fetch Metadata, or where that is absent by the exact
/// `Origin`.
#[must_use]
pub fn is_same_origin(request: &HttpRequest, public_url: &Url) -> bool {
    match request.headers().get("sec-fetch-site") {
        Some(site) => site == "same-origin",
        None => request
            .headers()
            .get(ORIGIN)
            .and_then(|origin| origin.to_str().ok())
            .is_some_and(|origin| origin == public_url.origin().ascii_serialization()),
    }
}
