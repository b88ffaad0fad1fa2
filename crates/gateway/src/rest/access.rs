//! Admission of requests: whose token they show, or that no web page sends them; their form; and
//! the limits of concurrency.
//!
//! A page does not know the token, so where there is one it is enough; where there is none, no page
//! is let in that could be a stranger's ([`WebPages`]).

use super::RestLimits;
use super::failure::Failure;
use super::origin::WebPages;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;
use quorate_engine::{is_beyond_share, must_leave_room};
use quorate_node::http_access::{Granted, UserEntry, Users};
use quorate_node::http_server::Caller;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

/// Refuses a body that does not say it is JSON where JSON is taken: a web page can send any other
/// kind without asking first (a "simple" request). Values of keys are not JSON, and come by PUT,
/// for which a page must ask.
fn require_json(request: &Request) -> Result<(), Failure> {
    let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let kind = kind.unwrap_or_default().split(|byte| *byte == b';').next().unwrap_or_default();
    let is_json = kind.trim_ascii().eq_ignore_ascii_case(b"application/json");
    if request.method() != Method::POST || is_json {
        return Ok(());
    }
    Err(Failure::no_json())
}

/// Whoever sends a request, as far as its share of the places goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sender {
    User(String),
    Address(IpAddr),
}

/// Admission control: who is let in, and the number of requests under way.
pub(crate) struct Admission<U: UserEntry> {
    users: Option<Arc<Users<U>>>,
    web_pages: Arc<WebPages>,
    requests_max: usize,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    shares: BTreeMap<Sender, usize>,
}

/// Place of a request; given back when dropped.
struct Place<'a> {
    places: &'a Mutex<Places>,
    sender: Option<Sender>,
}

impl<U: UserEntry> Admission<U> {
    /// Everybody is let in where there are no users, but for web pages other than these.
    pub(crate) fn new(
        users: Option<Arc<Users<U>>>,
        web_pages: Arc<WebPages>,
        limits: &RestLimits,
    ) -> Arc<Self> {
        let requests_max = limits.requests_max.max(1);
        Arc::new(Self { users, web_pages, requests_max, places: Mutex::default() })
    }

    fn grant(&self, headers: &HeaderMap) -> Result<Arc<U::Grant>, Failure> {
        let Some(users) = &self.users else {
            self.web_pages.check(headers)?;
            return Ok(Arc::new(U::Grant::everything()));
        };
        if headers.contains_key(header::AUTHORIZATION) {
            return Ok(users.admit(users.shown_by(headers))?);
        }
        U::Grant::guest().map(Arc::new).ok_or_else(Failure::no_token)
    }

    /// Takes a place for a request of this sender. This machine's, without a name, are not counted
    /// by address: a proxy speaks for many.
    fn enter(&self, sender: Option<Sender>) -> Result<Place<'_>, Failure> {
        let mut places = self.places.lock();
        let Places { taken, shares } = &mut *places;
        if *taken >= self.requests_max {
            return Err(Failure::busy());
        }
        if let Some(sender) = &sender {
            let room = (*taken, self.requests_max);
            if is_beyond_share(shares, sender, 1, room) || must_leave_room(shares, sender, room) {
                return Err(Failure::share_taken());
            }
            *shares.entry(sender.clone()).or_default() += 1;
        }
        *taken += 1;
        drop(places);
        Ok(Place { places: &self.places, sender })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        places.taken -= 1;
        if let Some(sender) = self.sender.take()
            && let Entry::Occupied(mut share) = places.shares.entry(sender)
        {
            *share.get_mut() -= 1;
            if *share.get() == 0 {
                share.remove();
            }
        }
    }
}

/// Lets a request through that shows a token, or where there is none that no web page sent, while
/// there are not too many; its handler finds what its sender may do.
pub(crate) async fn guard<U: UserEntry>(
    State(admission): State<Arc<Admission<U>>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let grant = admission.grant(request.headers())?;
    require_json(&request)?;
    let address = request.extensions().get::<Caller>().map(|caller| caller.0);
    let sender = match grant.name() {
        "" => address.filter(|address| !address.is_loopback()).map(Sender::Address),
        name => Some(Sender::User(name.to_owned())),
    };
    let _place = admission.enter(sender)?;
    request.extensions_mut().insert(grant);
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::{Admission, Sender};
    use crate::rest::{RestLimits, User, WebPages};
    use std::sync::Arc;

    #[test]
    fn one_sender_leaves_places_for_others() {
        let limits = RestLimits { requests_max: 16, ..RestLimits::default() };
        let admission = Admission::<User>::new(None, Arc::new(WebPages::Refused), &limits);
        let user = |name: &str| Some(Sender::User(name.to_owned()));
        let mut places = Vec::new();
        let refused = loop {
            match admission.enter(user("a")) {
                Ok(place) => places.push(place),
                Err(failure) => break failure,
            }
        };
        assert_eq!((places.len(), refused.status.as_u16()), (14, 429));
        places.push(admission.enter(user("b")).expect("a place is left"));
        assert!(admission.enter(user("a")).is_err());
        places.push(admission.enter(None).expect("this machine's are not counted"));
        assert_eq!(admission.enter(user("c")).err().expect("all taken").status.as_u16(), 503);
        drop(places);
        assert!(admission.places.lock().shares.is_empty());
        assert!(admission.enter(user("a")).is_ok());
    }
}
