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

/// The explorer, beside what it shares with other pages.
const FILES: [PageFile; 3] = [
    PageFile::html("/", include_str!("../explorer/index.html")),
    PageFile::css("/explorer.css", include_str!("../explorer/explorer.css")),
    PageFile::script("/explorer.js", include_str!("../explorer/explorer.js")),
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
