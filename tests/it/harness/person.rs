//! A person who uses the pages without scripts, over HTTP.

use reqwest::header::{HeaderMap, LOCATION, ORIGIN};
use reqwest::{Method, RequestBuilder, StatusCode, Url};
use scraper::{Html, Selector};

use super::handler::client;
use super::issuer::Issuer;

/// A person at a browser.
#[derive(Clone)]
pub(crate) struct Visitor {
    http: reqwest::Client,
    origin: String,
    token: Option<String>,
}

/// A page as the browser received it.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) html: String,
}

impl Visitor {
    /// A person without a proxy's token.
    pub(crate) fn new(base: &Url) -> Self {
        Self { http: client(), origin: base.origin().ascii_serialization(), token: None }
    }

    /// A person whose proxy adds this token.
    pub(crate) fn signed_in(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// A request as this person's browser would send it.
    pub(crate) fn request(&self, method: Method, url: &str) -> RequestBuilder {
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.header(Issuer::HEADER, token),
            None => request,
        }
    }

    /// Sends a request that was prepared.
    pub(crate) async fn send(request: RequestBuilder) -> Page {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        Page { status, headers, html: response.text().await.unwrap() }
    }

    /// Opens a page.
    pub(crate) async fn get(&self, url: &str) -> Page {
        Self::send(self.request(Method::GET, url)).await
    }

    /// Sends a form from a page of the service.
    pub(crate) async fn post(&self, url: &str, form: &[(String, String)]) -> Page {
        Self::send(self.form(url, form)).await
    }

    /// A form as our own page sends it.
    pub(crate) fn form(&self, url: &str, form: &[(String, String)]) -> RequestBuilder {
        self.request(Method::POST, url).header(ORIGIN, &self.origin).form(form)
    }

    /// Opens a link, enters `value` as its API key, and sends the form.
    pub(crate) async fn submit(&self, link: &str, value: &str) -> Page {
        let form = self.get(link).await.filled(&[("api_key", value)]);
        self.post(&format!("{link}/secret"), &form).await
    }

    /// As [`Visitor::submit`], to the end.
    pub(crate) async fn complete(&self, link: &str, value: &str) {
        let answer = self.submit(link, value).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text());
        assert!(answer.location().ends_with("/done"), "{}", answer.location());
    }

    /// Opens a link and declines.
    pub(crate) async fn decline(&self, link: &str) -> Page {
        let form = self.get(link).await.proof();
        self.post(&format!("{link}/decline"), &form).await
    }
}

impl Page {
    fn select(&self, selector: &str, mut each: impl FnMut(scraper::ElementRef<'_>)) {
        let html = Html::parse_document(&self.html);
        html.select(&Selector::parse(selector).unwrap()).for_each(&mut each);
    }

    /// The text of everything that `selector` finds, white space collapsed.
    pub(crate) fn texts(&self, selector: &str) -> Vec<String> {
        let mut texts = Vec::new();
        self.select(selector, |element| {
            let text = element.text().collect::<Vec<_>>().join(" ");
            texts.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
        });
        texts
    }

    /// The value of an attribute of everything that `selector` finds.
    pub(crate) fn attributes(&self, selector: &str, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        self.select(selector, |element| values.extend(element.attr(name).map(str::to_owned)));
        values
    }

    /// The text that a person reads.
    pub(crate) fn text(&self) -> String {
        self.texts("body").concat()
    }

    /// The page's heading.
    pub(crate) fn heading(&self) -> String {
        self.texts("h1").concat()
    }

    /// The form proof of this render.
    pub(crate) fn proof(&self) -> Vec<(String, String)> {
        ["_render", "_token"]
            .into_iter()
            .filter_map(|name| {
                let value = self.attributes(&format!("input[name={name}]"), "value").into_iter().next()?;
                Some((name.to_owned(), value))
            })
            .collect()
    }

    /// The form proof, and what the person entered.
    pub(crate) fn filled(&self, values: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut form = self.proof();
        form.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        form
    }

    /// Where a redirect leads.
    pub(crate) fn location(&self) -> &str {
        self.headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
