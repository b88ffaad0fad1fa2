//! HTTP behind a limited listener: the one way in which pages and gateways are served.

mod budget;

pub use budget::{ConnectionBudget, MessageUnderWay};

use crate::connections::{AcceptedStream, Acceptor};
use crate::http_tls::HttpTls;
use crate::quotas::AddressRates;
use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use budget::Metered;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep, timeout};
use tower::Service;

/// Longest time for a request's head to come, and for a connection to be idle.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time for a request's body to come, where its handler sets no other.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of one connection that wait to be read, and longest head of a request.
const BUFFER_BYTES: usize = 64 * 1024;

/// Refusal of an address beyond its rate.
const TOO_MANY: &str = "this address sends more requests than it may: try again after Retry-After";

type BoxError = Box<dyn Error + Send + Sync>;

/// Rules of a door, whatever is behind it.
#[derive(Clone, Debug)]
pub struct DoorRules {
    /// Longest time for a TLS handshake, for a request's head, and for a connection to be idle.
    pub head_timeout: Duration,
    /// Certificate of the door; `None` for plain HTTP.
    pub tls: Option<Arc<HttpTls>>,
    /// Requests that an address may send, and TLS handshakes, which count as such.
    pub rates: Arc<AddressRates>,
}

impl Default for DoorRules {
    /// Plain HTTP, at any rate.
    fn default() -> Self {
        Self { head_timeout: HEAD_TIMEOUT, tls: None, rates: Arc::default() }
    }
}

/// Address that a request came from, among its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller(pub IpAddr);

/// Connection as the protocol sees it.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Wire for S {}

/// Serves pages for ever; connections may be upgraded. Each request has its [`Caller`] and its
/// connection's [`ConnectionBudget`] among its extensions.
pub async fn serve<S, B>(acceptor: Acceptor, pages: S, rules: DoorRules)
where
    S: Service<Request<TimedBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(rules.head_timeout);
    protocol.max_buf_size(BUFFER_BYTES);
    let pages = TowerToHyperService::new(pages);
    loop {
        let (stream, from) = acceptor.accept().await;
        let (handle, pages, rates) = (stream.handle(), pages.clone(), Arc::clone(&rules.rates));
        let budget = ConnectionBudget::default();
        let kept = budget.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let busy = handle.begin();
            let allowed = rates.take(from.ip());
            let mut request = request.map(TimedBody::new);
            conceal(request.headers_mut());
            request.extensions_mut().insert(Caller(from.ip()));
            request.extensions_mut().insert(kept.clone());
            let response = allowed.map(|()| pages.call(request));
            async move {
                let response = match response {
                    Ok(response) => response.await.map(|response| response.map(Body::new)),
                    Err(wait) => Ok(too_many(wait, TOO_MANY)),
                };
                drop(busy);
                response
            }
        });
        let (protocol, rules) = (protocol.clone(), rules.clone());
        tokio::spawn(async move {
            let Some(wire) = open(stream, from.ip(), &rules).await else { return };
            let wire = TokioIo::new(Metered { wire, budget });
            let conversation = protocol.serve_connection(wire, answer);
            if let Err(error) = conversation.with_upgrades().await {
                tracing::debug!(%error, "an HTTP connection ended");
            }
        });
    }
}

/// The connection to speak HTTP on; `None` where there was no handshake. One costs a signature, and
/// counts as a request does: beyond its sender's rate there is none.
async fn open(stream: AcceptedStream, from: IpAddr, rules: &DoorRules) -> Option<Box<dyn Wire>> {
    let Some(tls) = &rules.tls else { return Some(Box::new(stream)) };
    rules.rates.take(from).ok()?;
    match timeout(rules.head_timeout, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(Box::new(stream)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "an HTTP connection without TLS, or none that is taken");
            None
        }
        Err(_) => None,
    }
}

/// Marks the token of a request as a secret: whoever logs the request shows nothing of it.
fn conceal(headers: &mut HeaderMap) {
    if let Some(value) = headers.get_mut(header::AUTHORIZATION) {
        value.set_sensitive(true);
    }
}

/// Refusal of a request that exceeds its sender's rate: when to come again, and why.
pub(crate) fn too_many(wait: Duration, error: &str) -> Response<Body> {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let again = (header::RETRY_AFTER, HeaderValue::from(seconds));
    refusal(StatusCode::TOO_MANY_REQUESTS, error, Some(again))
}

/// Refusal of a request: a JSON object that says what is wrong, with one more field in its head.
pub(crate) fn refusal(
    status: StatusCode,
    error: &str,
    field: Option<(HeaderName, HeaderValue)>,
) -> Response<Body> {
    let mut response = Response::new(Body::from(json!({ "error": error }).to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response.headers_mut().extend(field);
    response
}

/// Body of a request that fails when it does not come within [`BODY_TIMEOUT`].
#[derive(Debug)]
pub struct TimedBody {
    body: Incoming,
    deadline: Pin<Box<Sleep>>,
}

impl TimedBody {
    fn new(body: Incoming) -> Self {
        Self { body, deadline: Box::pin(sleep(BODY_TIMEOUT)) }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|result| result.map_err(Into::into)));
        }
        self.deadline.as_mut().poll(context).map(|()| {
            let slow = io::Error::new(io::ErrorKind::TimedOut, "the body did not come in time");
            Some(Err(slow.into()))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::testing::connection;
    use crate::connections::{ConnectionLimiter, ConnectionLimits};
    use crate::http_tls::HttpTlsFiles;
    use crate::quotas::RateLimit;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn tls() -> Arc<HttpTls> {
        let folder = tempfile::tempdir().expect("a folder");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/data/tls");
        let key = folder.path().join("first.key");
        fs::copy(data.join("first.key"), &key).expect("copied");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("set");
        HttpTls::load(HttpTlsFiles { cert: data.join("first.pem"), key }).expect("a certificate")
    }

    #[test]
    fn no_log_shows_the_token_of_a_request() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_static("Bearer a-token-of-somebody");
        headers.insert(header::AUTHORIZATION, value);
        conceal(&mut headers);
        let shown = format!("{headers:?}");
        assert!(shown.contains("authorization") && !shown.contains("a-token"), "{shown}");
    }

    #[tokio::test]
    async fn tls_handshakes_count_and_there_are_none_beyond_the_rate() {
        let limiter = ConnectionLimiter::new(ConnectionLimits::of(9), Default::default());
        let rates = AddressRates::new(RateLimit { per_second: 1 });
        let hour = Duration::from_secs(3_600);
        let rules = DoorRules { head_timeout: hour, tls: Some(tls()), rates: Arc::clone(&rates) };
        let from = IpAddr::from([192, 0, 2, 1]);
        // Nobody says anything: a handshake that begins goes on for an hour.
        for _ in 0..2 {
            let ends = connection(&limiter).await;
            let begun = timeout(Duration::ZERO, open(ends.accepted, from, &rules)).await;
            assert!(begun.is_err(), "a second's worth, and one");
        }
        let ends = connection(&limiter).await;
        assert!(open(ends.accepted, from, &rules).await.is_none());
        assert!(rates.take(from).is_err());
    }
}
