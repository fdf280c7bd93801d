//! The stylesheet and the script, under names that change with their content, so that browsers may keep them.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A file that pages refer to.
pub struct Asset {
    /// Its name, with a part of its digest.
    pub name: String,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub content: &'static str,
}

/// All files that pages refer to.
pub struct Assets {
    /// The stylesheet.
    pub style: Asset,
    /// The script.
    pub script: Asset,
}

impl Assets {
    /// The files as compiled in.
    #[must_use]
    pub fn new() -> Self {
        Self {
            style: Asset::new(
                "style",
                "css",
                "text/css; charset=utf-8",
                include_str!("../../static/style.css"),
            ),
            script: Asset::new(
                "page",
                "js",
                "text/javascript; charset=utf-8",
                include_str!("../../static/page.js"),
            ),
        }
    }

    /// The file of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Asset> {
        [&self.style, &self.script].into_iter().find(|asset| asset.name == name)
    }
}

impl Default for Assets {
    fn default() -> Self {
        Self::new()
    }
}

impl Asset {
    fn new(stem: &str, ending: &str, media_type: &'static str, content: &'static str) -> Self {
        let digest = digest(&SHA256, content.as_bytes());
        let part = URL_SAFE_NO_PAD.encode(digest.as_ref().get(..9).unwrap_or_default());
        Self { name: format!("{stem}.{part}.{ending}"), media_type, content }
    }

    /// Where it is, under the path that the service is reached under.
    #[must_use]
    pub fn path(&self, prefix: &str) -> String {
        format!("{prefix}/static/{}", self.name)
    }
}
