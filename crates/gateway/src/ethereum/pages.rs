//! Answers to requests that are not calls: the explorer's files, and leave for browsers to call
//! from pages of other origins.

use jsonrpsee::core::BoxError;
use jsonrpsee::server::{HttpBody, HttpRequest, HttpResponse};
use quorate_node::pages::{HEADERS, PageFile, SHARED};
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// The explorer, beside what it shares with other pages.
const FILES: [PageFile; 3] = [
    PageFile::html("/", include_str!("../explorer/index.html")),
    PageFile::css("/explorer.css", include_str!("../explorer/explorer.css")),
    PageFile::script("/explorer.js", include_str!("../explorer/explorer.js")),
];

/// Serves the pages in front of the calls.
#[derive(Clone, Debug)]
pub(super) struct Pages;

impl<S> Layer<S> for Pages {
    type Service = InFront<S>;

    fn layer(&self, inner: S) -> InFront<S> {
        InFront { inner }
    }
}

#[derive(Clone, Debug)]
pub(super) struct InFront<S> {
    inner: S,
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

    fn call(&mut self, request: HttpRequest<B>) -> Answer {
        match page(&request) {
            Some(page) => Box::pin(done(page)),
            None => {
                let answer = self.inner.call(request);
                Box::pin(async move { answer.await.map(open_to_all).map_err(Into::into) })
            }
        }
    }
}

fn done(response: HttpResponse) -> Ready<Result<HttpResponse, BoxError>> {
    ready(Ok(response))
}

/// Page for a request that is not a call; `None` for a call.
fn page<B>(request: &HttpRequest<B>) -> Option<HttpResponse> {
    match request.method().as_str() {
        "OPTIONS" => Some(open_to_all(respond(204, "text/plain", ""))),
        "GET" if !request.headers().contains_key("upgrade") => {
            let path = request.uri().path();
            let mut files = FILES.iter().chain(&SHARED);
            let file = files.find(|file| file.path == path);
            Some(file.map_or_else(
                || {
                    respond(
                        404,
                        "text/plain; charset=utf-8",
                        "There is no such page; the explorer is at /\n",
                    )
                },
                |file| respond(200, file.kind, file.content),
            ))
        }
        _ => None,
    }
}

fn respond(status: u16, kind: &'static str, content: &'static str) -> HttpResponse {
    let builder = HttpResponse::builder().status(status).header("content-type", kind);
    HEADERS
        .iter()
        .fold(builder, |builder, (name, value)| builder.header(*name, *value))
        .body(HttpBody::from(content))
        .expect("plain headers")
}

/// Wallets in browsers call from pages of others. A call brings no credentials that could be
/// stolen.
fn open_to_all(mut response: HttpResponse) -> HttpResponse {
    let headers = response.headers_mut();
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "POST, GET, OPTIONS"),
        ("access-control-allow-headers", "content-type"),
        ("access-control-max-age", "86400"),
    ] {
        headers.insert(name, value.parse().expect("plain text"));
    }
    response
}
