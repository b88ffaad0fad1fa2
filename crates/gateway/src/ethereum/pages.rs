//! Answers to requests that are not calls: the explorer's files, and leave for browsers to call
//! from pages of other origins.

use super::access::{RpcUsers, Sender};
use axum::response::IntoResponse;
use jsonrpsee::core::BoxError;
use jsonrpsee::server::{HttpBody, HttpRequest, HttpResponse};
use quorate_node::pages::{HEADERS, PageFile, SHARED};
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Page of the explorer, whatever path it is asked for by.
const INDEX: PageFile = PageFile::html("/", include_str!("../explorer/index.html"));

/// Beginnings of the paths of the explorer's pages (EIP-3091), which its script tells apart.
const PAGES: [&str; 6] = ["tx", "block", "address", "token", "search", "committee"];

/// Module of the explorer, by its name.
macro_rules! script {
    ($name:literal) => {
        PageFile::script(
            concat!("/", $name, ".js"),
            include_str!(concat!("../explorer/", $name, ".js")),
        )
    };
}

/// The explorer's other files, beside what it shares with other pages.
const FILES: [PageFile; 19] = [
    PageFile::css("/explorer.css", include_str!("../explorer/explorer.css")),
    script!("abi"),
    script!("accounts"),
    script!("barcharts"),
    script!("blocks"),
    script!("calls"),
    script!("committee"),
    script!("contract"),
    script!("elements"),
    script!("explorer"),
    script!("hashes"),
    script!("known"),
    script!("overview"),
    script!("rpc"),
    script!("text"),
    script!("token"),
    script!("transactions"),
    script!("transfers"),
    script!("values"),
];

/// Serves the pages in front of the calls, and lets in whose calls are taken. The explorer's files
/// are for everybody: what they show, they ask for by calls.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    pub(super) users: RpcUsers,
}

impl<S> Layer<S> for Pages {
    type Service = InFront<S>;

    fn layer(&self, inner: S) -> InFront<S> {
        InFront { inner, users: self.users.clone() }
    }
}

#[derive(Clone, Debug)]
pub(super) struct InFront<S> {
    inner: S,
    users: RpcUsers,
}

type Answer = Pin<Box<dyn Future<Output = Result<HttpResponse, BoxError>> + Send>>;

impl<S, B> Service<HttpRequest<B>> for InFront<S>
where
    S: Service<HttpRequest<B>, Response = HttpResponse>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = HttpResponse;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: HttpRequest<B>) -> Answer {
        if let Some(page) = page(&request) {
            return Box::pin(done(page));
        }
        match Sender::of(&self.users, request.headers()) {
            Ok(sender) => request.extensions_mut().insert(sender),
            Err(refused) => {
                let response = refused.into_response().map(HttpBody::new);
                return Box::pin(done(open_to_all(response)));
            }
        };
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map(open_to_all).map_err(Into::into) })
    }
}

fn done(response: HttpResponse) -> Ready<Result<HttpResponse, BoxError>> {
    ready(Ok(response))
}

/// Page for a request that is not a call; `None` for a call.
fn page<B>(request: &HttpRequest<B>) -> Option<HttpResponse> {
    match request.method().as_str() {
        "OPTIONS" => Some(open_to_all(respond(204, "text/plain", ""))),
        "GET" if !request.headers().contains_key("upgrade") => Some(
            file(request.uri().path())
                .map_or_else(not_found, |file| respond(200, file.kind, file.content)),
        ),
        _ => None,
    }
}

/// File that a path names.
fn file(path: &str) -> Option<&'static PageFile> {
    let page = path.split('/').nth(1).unwrap_or_default();
    if page.is_empty() || PAGES.contains(&page) {
        return Some(&INDEX);
    }
    FILES.iter().chain(&SHARED).find(|file| file.path == path)
}

fn not_found() -> HttpResponse {
    let text = "There is no such page; the explorer is at /\n";
    respond(404, "text/plain; charset=utf-8", text)
}

fn respond(status: u16, kind: &'static str, content: &'static str) -> HttpResponse {
    let builder = HttpResponse::builder().status(status).header("content-type", kind);
    HEADERS
        .iter()
        .fold(builder, |builder, (name, value)| builder.header(*name, *value))
        .body(HttpBody::from(content))
        .expect("plain headers")
}

/// Wallets in browsers call from pages of others. A browser adds no credentials to a call by
/// itself: a page that shows a token was given it.
fn open_to_all(mut response: HttpResponse) -> HttpResponse {
    let headers = response.headers_mut();
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "POST, GET, OPTIONS"),
        ("access-control-allow-headers", "authorization, content-type"),
        ("access-control-max-age", "86400"),
    ] {
        headers.insert(name, value.parse().expect("plain text"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answer to a browser that asks for a path.
    fn asked(path: &str) -> Option<HttpResponse> {
        page(&HttpRequest::builder().uri(path).body(()).expect("a request"))
    }

    #[test]
    fn every_page_of_the_explorer_has_a_path_of_its_own() {
        for path in ["/", "/tx/0x5a", "/block/7", "/address/0x12?tab=events", "/token/0x12"] {
            let response = asked(path).expect("a page");
            assert_eq!(response.status(), 200, "{path}");
            assert_eq!(response.headers()["content-type"], INDEX.kind, "{path}");
        }
        for path in ["/txs/0x5a", "/explorer.js/7", "/index.html"] {
            assert_eq!(asked(path).expect("a page").status(), 404, "{path}");
        }
    }

    #[test]
    fn whatever_a_module_takes_from_another_is_served() {
        let all: Vec<_> = FILES.iter().chain(&SHARED).collect();
        for file in all.iter().filter(|file| file.kind.starts_with("text/javascript")) {
            for rest in file.content.split("from \"./").skip(1) {
                let (name, _) = rest.split_once('"').expect("an end");
                let path = format!("/{name}");
                assert!(all.iter().any(|file| file.path == path), "{}: {name}", file.path);
            }
        }
    }
}
