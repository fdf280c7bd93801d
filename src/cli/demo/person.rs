//! The person of the demo: opens the page and fills in its form over HTTP, as a browser without scripts would.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::Regex;
use url::Url;
use zeroize::Zeroizing;

use crate::cli::{Failure, say};
use crate::domain::Random as _;
use crate::system::SystemRandom;
use crate::upstream;

/// Opens the link, enters a made-up key, and sends the form.
pub(super) async fn play(link: &str) -> Result<(), Failure> {
    let url = Url::parse(link)?;
    let http = upstream::http::plain()?;
    let silent = |_| Failure::new("the page does not answer");

    let page = http.get(url.clone()).send().await.map_err(silent)?.text().await.map_err(silent)?;
    say("person: opened the link, read who asks and why")?;
    let mut form = hidden_inputs(&page)?;
    let mut bytes = Zeroizing::new([0; 24]);
    SystemRandom.fill(&mut *bytes);
    form.push(("api_key".to_owned(), format!("demo-{}", URL_SAFE_NO_PAD.encode(*bytes))));
    say("person: entered a made-up key and pressed the button")?;

    let answer = http
        .post(format!("{link}/secret"))
        .header("Origin", url.origin().ascii_serialization())
        .form(&form)
        .send()
        .await
        .map_err(silent)?;
    if answer.status() != reqwest::StatusCode::SEE_OTHER {
        return Err(Failure::new(format!("the form was answered with {}", answer.status())));
    }
    let done = http.get(format!("{link}/done")).send().await.map_err(silent)?;
    if !done.status().is_success() {
        return Err(Failure::new(format!("the last page was answered with {}", done.status())));
    }
    say("person: the page says that it is done")?;
    Ok(())
}

fn hidden_inputs(page: &str) -> Result<Vec<(String, String)>, Failure> {
    let pattern = Regex::new(r#"<input type="hidden" name="([^"]+)" value="([^"]+)">"#)?;
    let mut inputs: Vec<_> =
        pattern.captures_iter(page).map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
    // A page with several forms repeats the same proof.
    inputs.dedup();
    inputs.truncate(2);
    if inputs.len() < 2 {
        return Err(Failure::new("the page has no form"));
    }
    Ok(inputs)
}
