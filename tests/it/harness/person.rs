//! A person who uses the pages without scripts, over HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use reqwest::header::{COOKIE, HeaderMap, LOCATION, ORIGIN, SET_COOKIE};
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
    /// The cookies of this person's browser.
    jar: Arc<Mutex<BTreeMap<String, String>>>,
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
        Self { http: client(), origin: base.origin().ascii_serialization(), token: None, jar: Arc::default() }
    }

    /// A person whose proxy adds this token.
    pub(crate) fn signed_in(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// A request as this person's browser would send it.
    pub(crate) fn request(&self, method: Method, url: &str) -> RequestBuilder {
        let jar = self.jar.lock().unwrap();
        let cookies: Vec<_> = jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = self.http.request(method, url);
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies.join("; "));
        }
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
        self.kept(Self::send(self.request(Method::GET, url)).await)
    }

    /// Sends a form from a page of the service.
    pub(crate) async fn post(&self, url: &str, form: &[(String, String)]) -> Page {
        self.kept(Self::send(self.form(url, form)).await)
    }

    /// Keeps the cookies that a page sets.
    fn kept(&self, page: Page) -> Page {
        for cookie in page.cookies() {
            let (pair, attributes) = cookie.split_once(';').unwrap_or((&cookie, ""));
            let (name, value) = pair.split_once('=').unwrap();
            let mut jar = self.jar.lock().unwrap();
            if attributes.contains("Max-Age=0") {
                jar.remove(name);
            } else {
                jar.insert(name.to_owned(), value.to_owned());
            }
        }
        page
    }

    /// The cookies that this person's browser has.
    pub(crate) fn cookies(&self) -> BTreeMap<String, String> {
        self.jar.lock().unwrap().clone()
    }

    /// Puts a cookie into this person's browser.
    pub(crate) fn plant(&self, name: &str, value: &str) {
        self.jar.lock().unwrap().insert(name.to_owned(), value.to_owned());
    }

    /// Presses the button to sign in, on a page of this link, and goes as far as the last page of ours: where that
    /// leads.
    pub(crate) async fn leave(&self, link: &str, page: &Page) -> Url {
        let again = page.attributes("input[name=again]", "value").into_iter().map(|value| ("again", value));
        let mut form = page.proof();
        form.extend(again.map(|(name, value)| (name.to_owned(), value)));
        let begun = self.post(&format!("{link}/signin"), &form).await;
        assert_eq!(begun.status, StatusCode::SEE_OTHER, "{}", begun.text());
        let leaves = self.get(&format!("{}{}", self.origin, begun.location())).await;
        assert_eq!(leaves.status, StatusCode::OK, "{}", leaves.text());
        let refresh = leaves.attributes("meta[http-equiv=refresh]", "content").remove(0);
        let to = leaves.attributes("a.button", "href").remove(0);
        assert_eq!(refresh, format!("0; url={to}"));
        Url::parse(&to).unwrap()
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

    /// The cookies that it sets, as written.
    pub(crate) fn cookies(&self) -> Vec<String> {
        self.headers.get_all(SET_COOKIE).iter().map(|cookie| cookie.to_str().unwrap().to_owned()).collect()
    }

    /// Where a redirect leads.
    pub(crate) fn location(&self) -> &str {
        self.headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
