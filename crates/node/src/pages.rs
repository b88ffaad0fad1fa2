//! Pages for browsers, which this program holds: what those of the status door and of gateways
//! have in common, so that they look and work alike.

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::{HeaderName, HeaderValue};
use axum::response::IntoResponse;
use axum::routing::get;

/// File that belongs to a page.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// Path at which it is served.
    pub path: &'static str,
    /// Media type, with the charset.
    pub kind: &'static str,
    /// Text of it, which is in this program.
    pub content: &'static str,
}

/// Styles and script that pages share: colours, cards, tables; elements and numbers as text.
pub const SHARED: [PageFile; 2] = [
    PageFile::css("/base.css", include_str!("pages/base.css")),
    PageFile::script("/base.js", include_str!("pages/base.js")),
];

/// Headers of every file. A page loads nothing from elsewhere, and runs nothing that is not in its
/// files.
pub const HEADERS: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-cache"),
];

impl PageFile {
    /// Page that a browser opens, in UTF-8.
    #[must_use]
    pub const fn html(path: &'static str, content: &'static str) -> Self {
        Self { path, kind: "text/html; charset=utf-8", content }
    }

    /// Style sheet of a page, in UTF-8.
    #[must_use]
    pub const fn css(path: &'static str, content: &'static str) -> Self {
        Self { path, kind: "text/css; charset=utf-8", content }
    }

    /// Module of a page, in UTF-8.
    #[must_use]
    pub const fn script(path: &'static str, content: &'static str) -> Self {
        Self { path, kind: "text/javascript; charset=utf-8", content }
    }

    fn headers(self) -> HeaderMap {
        let all = [("content-type", self.kind)].into_iter().chain(HEADERS);
        let header =
            |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        all.map(header).collect()
    }
}

/// Routes to files.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(
    files: impl IntoIterator<Item = PageFile>,
) -> Router<S> {
    files.into_iter().fold(Router::new(), |router, file| {
        router.route(
            file.path,
            get(move || async move { (file.headers(), file.content).into_response() }),
        )
    })
}
