//! HTTP behind a limited listener: the one way in which pages and gateways are served.

use crate::connections::Acceptor;
use axum::body::HttpBody;
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};
use tower::Service;

/// Longest time for a request's head to come, and for a connection to be idle.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time for a request's body to come, where its handler sets no other.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of one connection that wait to be read, and longest head of a request.
const BUFFER_BYTES: usize = 64 * 1024;

type BoxError = Box<dyn Error + Send + Sync>;

/// Serves pages for ever. A request's head has `head_timeout` to come, and a connection may be idle
/// for as long; connections may be upgraded.
pub async fn serve<S, B>(acceptor: Acceptor, pages: S, head_timeout: Duration)
where
    S: Service<Request<TimedBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(BUFFER_BYTES);
    let pages = TowerToHyperService::new(pages);
    loop {
        let (stream, _) = acceptor.accept().await;
        let (handle, pages) = (stream.handle(), pages.clone());
        let answer = service_fn(move |request: Request<Incoming>| {
            let busy = handle.begin();
            let response = pages.call(request.map(TimedBody::new));
            async move {
                let response = response.await;
                drop(busy);
                response
            }
        });
        let conversation = protocol.serve_connection(TokioIo::new(stream), answer).with_upgrades();
        tokio::spawn(async move {
            if let Err(error) = conversation.await {
                tracing::debug!(%error, "an HTTP connection ended");
            }
        });
    }
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

impl Body for TimedBody {
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
