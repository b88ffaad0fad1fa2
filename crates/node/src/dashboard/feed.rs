//! Events for all who listen: each is made once, kept by nobody who does not read it, and the last
//! ten minutes are there for who comes later.

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Version of what events hold: fields are added under one version, and not changed.
pub(super) const VERSION: u32 = 1;
/// Seconds of the past that are kept.
const PAST_MAX: usize = 600;
/// Most that listen at once.
pub(super) const LISTENERS_MAX: usize = 16;
/// Events that may wait for one of them; beyond that it is dropped.
const WAITING_MAX: usize = 8;
/// A stream ends after this long, so that whoever listens is let in anew.
const STREAM_MAX: Duration = Duration::from_secs(600);
/// Where all places are taken, one should be free after so many seconds.
const RETRY_AFTER_S: u16 = 10;

/// Events of one validator.
#[derive(Debug, Default)]
pub struct Feed(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Names of a row's figures.
    fields: Vec<String>,
    /// Figures of the last seconds, each as a JSON array.
    past: VecDeque<String>,
    /// The event that tells them, for those who came since the last second.
    history: Option<Bytes>,
    listeners: Vec<Listener>,
    has_ended: bool,
}

#[derive(Debug)]
struct Listener {
    events: Sender<Bytes>,
    until: Instant,
}

/// Reason for which somebody may not listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotHeard {
    #[error(
        "{LISTENERS_MAX} pages listen already, as many as may: close one, or ask /status, which has no \
         such limit"
    )]
    Full,
    #[error("this validator stops")]
    Ended,
}

fn event(name: &str, data: &str) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

impl Feed {
    /// Adds a second's figures to the past, and sends `moment` to those who listen. It is made only
    /// if somebody does.
    pub(super) fn publish(
        &self,
        figures: Option<&Map<String, Value>>,
        moment: impl FnOnce() -> String,
    ) {
        let mut state = self.0.lock();
        if let Some(figures) = figures {
            state.remember(figures);
        }
        if !state.listeners.is_empty() {
            state.send(&event("moment", &moment()));
        }
    }

    /// Sends a sign of life.
    pub(super) fn comment(&self) {
        self.0.lock().send(&Bytes::from_static(b": alive\n\n"));
    }

    /// Ends all streams; there will be no others.
    pub(super) fn end(&self) {
        let mut state = self.0.lock();
        state.has_ended = true;
        state.listeners.clear();
    }

    /// Events from now on, the first of which tells the past.
    pub(super) fn listen(&self) -> Result<Receiver<Bytes>, NotHeard> {
        let mut state = self.0.lock();
        if state.has_ended {
            return Err(NotHeard::Ended);
        }
        state.listeners.retain(|listener| !listener.events.is_closed());
        if state.listeners.len() >= LISTENERS_MAX {
            return Err(NotHeard::Full);
        }
        let (events, stream) = channel(WAITING_MAX);
        events.try_send(state.history()).expect("an empty queue has room");
        state.listeners.push(Listener { events, until: Instant::now() + STREAM_MAX });
        Ok(stream)
    }

    /// The answer to whoever asks for events.
    pub(super) fn answer(&self) -> Response {
        let refused = match self.listen() {
            Ok(events) => {
                let headers = [
                    (header::CONTENT_TYPE, "text/event-stream"),
                    (header::CACHE_CONTROL, "no-store"),
                    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
                ];
                return (headers, Body::new(EventBody(events))).into_response();
            }
            Err(refused) => refused,
        };
        let retry = [(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S))];
        let error = Json(json!({ "error": refused.to_string() }));
        (StatusCode::SERVICE_UNAVAILABLE, retry, error).into_response()
    }
}

impl State {
    fn remember(&mut self, figures: &Map<String, Value>) {
        if self.fields.is_empty() {
            self.fields = figures.keys().cloned().collect();
        }
        if self.past.len() >= PAST_MAX {
            self.past.pop_front();
        }
        let row: Vec<&Value> = figures.values().collect();
        self.past.push_back(serde_json::to_string(&row).expect("plain figures"));
        self.history = None;
    }

    fn history(&mut self) -> Bytes {
        let State { fields, past, history, .. } = self;
        let made = history.get_or_insert_with(|| {
            let fields = serde_json::to_string(&fields).expect("plain names");
            let points = Vec::from_iter(past.iter().map(String::as_str)).join(",");
            let data = format!(r#"{{"version":{VERSION},"fields":{fields},"points":[{points}]}}"#);
            event("history", &data)
        });
        made.clone()
    }

    /// Whoever has not read the last events, has left or has listened for long is dropped.
    fn send(&mut self, event: &Bytes) {
        let now = Instant::now();
        self.listeners.retain(|listener| {
            now < listener.until && listener.events.try_send(event.clone()).is_ok()
        });
    }
}

/// Body of an answer that goes on until its sender is dropped.
struct EventBody(Receiver<Bytes>);

impl HttpBody for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

#[cfg(test)]
mod tests;
