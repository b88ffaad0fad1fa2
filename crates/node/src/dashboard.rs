//! The dashboard: a page that shows what this validator measures and sees, as it happens.
//!
//! [`watch`] looks once a second, keeps the last ten minutes of what changes ([`point`]), judges
//! what an operator should do something about ([`alerts`]), and sends one event to all who listen
//! at `/events` ([`feed`]). What it says of other members is what this validator sees of them.
//! `docs/OPERATING.md` describes the events.

mod alerts;
mod feed;
mod moment;
mod point;

pub(crate) use feed::Feed;

use crate::clock::unix_ms;
use crate::pages::{self, PageFile};
use crate::shown::Shown;
use alerts::Recent;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use moment::Moment;
use point::{Point, Reading};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Time from one look to the next.
const EVERY: Duration = Duration::from_secs(1);
/// A look that takes this long, as on a disk that hangs, is waited for with a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

const FILES: [PageFile; 5] = [
    PageFile::html("/", include_str!("pages/dashboard.html")),
    PageFile::css("/dashboard.css", include_str!("pages/dashboard.css")),
    PageFile::script("/dashboard.js", include_str!("pages/dashboard.js")),
    PageFile::script("/panels.js", include_str!("pages/panels.js")),
    PageFile::script("/charts.js", include_str!("pages/charts.js")),
];

/// Routes to the page's files, which are the same for everybody and hold no secret.
pub(crate) fn files<S: Clone + Send + Sync + 'static>() -> Router<S> {
    pages::routes(FILES.into_iter().chain(pages::SHARED))
}

/// Answers with the events from now on.
pub(crate) async fn events(State(shown): State<Shown>) -> Response {
    shown.feed.answer()
}

/// Looks once a second until the validator stops; then the events end.
pub(crate) async fn watch(shown: Shown) {
    let (feed, healthy) = (Arc::clone(&shown.feed), Arc::clone(&shown.healthy));
    let mut watch = Watch { shown, last: None, recent: Recent::default() };
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while healthy.load(Ordering::Relaxed) {
        ticks.tick().await;
        // It looks at files: a slow disk must not hold up those that carry votes.
        let mut look = tokio::task::spawn_blocking(move || {
            watch.look();
            watch
        });
        watch = loop {
            match timeout(KEEP_ALIVE, &mut look).await {
                Ok(Ok(watch)) => break watch,
                Ok(Err(_)) => return feed.end(),
                Err(_) => feed.comment(),
            }
        };
    }
    feed.end();
}

/// What is remembered from one look to the next.
struct Watch {
    shown: Shown,
    last: Option<Reading>,
    recent: Recent,
}

impl Watch {
    fn look(&mut self) {
        let now = Reading::of(&self.shown);
        let at_ms = unix_ms();
        let point = self.last.as_ref().and_then(|last| Point::between(last, &now, at_ms));
        let alerts = self.recent.judge(&now.status, &self.shown.health.load(), at_ms);
        let columns = point.as_ref().map(Point::columns);
        let moment = || Moment::of(&self.shown, &now, (at_ms, point, alerts)).to_json();
        self.shown.feed.publish(columns.as_ref(), moment);
        self.last = Some(now);
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
