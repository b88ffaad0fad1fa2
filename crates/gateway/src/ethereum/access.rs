//! Whose calls are taken: tokens at the door, and at each call the right to send and the rates.
//!
//! A WebSocket is opened by one request and carries any number of calls, and so does a batch. So
//! each call is looked at by itself: a token that was taken back ends what its connection may do.

use super::error::{self, Failure};
use axum::http::HeaderMap;
use axum::http::header::UPGRADE;
use jsonrpsee::Extensions;
use jsonrpsee::server::MethodResponse;
use jsonrpsee::server::middleware::rpc::{
    Batch, BatchEntry, BatchEntryErr, Notification, Request, ResponseFuture, RpcServiceT,
};
use quorate_node::connections::counted;
use quorate_node::http_access::{DoorUser, Refused, Rights, Shown, Users};
use quorate_node::http_server::{Caller, ConnectionBudget};
use quorate_node::quotas::AddressRates;
use std::future::{Future, ready};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};
use tower::Layer;

/// Methods that send something into the order.
const SENDING: [&str; 1] = ["eth_sendRawTransaction"];

/// Users of JSON-RPC; `None` where everybody is let in.
pub(super) type RpcUsers = Option<Arc<Users<DoorUser>>>;

/// Sender of calls, among the extensions of its request and of each call in it.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    users: RpcUsers,
    shown: Option<Shown>,
    /// Calls that follow are not counted as requests of their own.
    is_upgraded: bool,
    /// Taken by the one subscription of the connection that is being told something.
    telling: Arc<Semaphore>,
}

impl Sender {
    /// Sender of a request with these headers.
    ///
    /// # Errors
    /// When it is not let in.
    pub(super) fn of(users: &RpcUsers, headers: &HeaderMap) -> Result<Self, Refused> {
        let shown = users.as_ref().and_then(|users| users.shown_by(headers));
        let is_upgraded = headers.contains_key(UPGRADE);
        let telling = Arc::new(Semaphore::new(1));
        let sender = Self { users: users.clone(), shown, is_upgraded, telling };
        if let Some(users) = users {
            users.grant(shown)?;
        }
        Ok(sender)
    }

    /// Returns `true` as long as its token is let in.
    pub(super) fn is_let_in(&self) -> bool {
        self.users.as_ref().is_none_or(|users| users.grant(self.shown).is_ok())
    }

    /// Waits for the other subscriptions of this connection to have sent what they found: one at a
    /// time, a connection that reads nothing holds what one of them finds at once.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        self.telling.acquire().await.expect("it is never closed")
    }

    /// Takes a call within its rate.
    fn take(&self, method: &str) -> Result<(), Refused> {
        let Some(users) = &self.users else { return Ok(()) };
        let grant = users.admit(self.shown)?;
        let needed = if SENDING.contains(&method) { Rights::Write } else { Rights::Read };
        if grant.has(needed) { Ok(()) } else { Err(Refused::ReadOnly) }
    }
}

/// Whoever asks, as far as it is told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asker {
    /// Whoever has this token.
    Token(Shown),
    /// Whoever is at this address, of those without one.
    Address(IpAddr),
    /// Somebody else.
    Unknown,
}

impl Asker {
    /// Sender of a call with these extensions.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let token = extensions.get::<Sender>().and_then(|sender| sender.shown);
        let at = |caller: &Caller| Self::Address(counted(caller.0));
        let address = || extensions.get::<Caller>().map_or(Self::Unknown, at);
        token.map_or_else(address, Self::Token)
    }
}

/// Looks at each call before it is answered.
#[derive(Clone, Debug)]
pub(super) struct CallRules {
    /// Calls that an address may send, where they are not counted as requests.
    pub(super) rates: Arc<AddressRates>,
}

impl CallRules {
    fn take(&self, extensions: &Extensions, method: &str, in_batch: bool) -> Result<(), Failure> {
        let sender = extensions.get::<Sender>();
        let is_counted = in_batch || sender.is_some_and(|sender| sender.is_upgraded);
        let address: Option<IpAddr> = extensions.get::<Caller>().map(|caller| caller.0);
        if let Some(address) = address.filter(|_| is_counted) {
            self.rates.take(address).map_err(|_| error::too_many("this address"))?;
        }
        sender.map_or(Err(Refused::NoToken), |sender| sender.take(method)).map_err(error::refused)
    }
}

impl<S> Layer<S> for CallRules {
    type Service = Ruled<S>;

    fn layer(&self, inner: S) -> Ruled<S> {
        Ruled { inner, rules: self.clone() }
    }
}

/// Bytes of a call.
fn bytes_of(request: &Request<'_>) -> usize {
    request.params.as_ref().map_or(0, |params| params.get().len())
}

/// What is kept for a caller while its messages are answered in any order, which those of a
/// WebSocket are.
pub(super) struct Kept(Option<ConnectionBudget>);

impl Kept {
    pub(super) fn of(extensions: &Extensions) -> Self {
        let is_upgraded = extensions.get::<Sender>().is_some_and(|sender| sender.is_upgraded);
        Self(extensions.get::<ConnectionBudget>().filter(|_| is_upgraded).cloned())
    }

    /// Returns `true` if the caller has so many answers to read that nothing is computed for it.
    pub(super) fn is_unread(&self) -> bool {
        self.0.as_ref().is_some_and(ConnectionBudget::is_unread)
    }

    /// Waits until it has read some.
    pub(super) async fn room(&self) {
        if let Some(budget) = &self.0 {
            budget.room().await;
        }
    }

    /// Answers a message of so many bytes, as soon as the caller has read what was answered before.
    async fn answer(
        self,
        bytes: usize,
        answer: impl Future<Output = MethodResponse>,
    ) -> MethodResponse {
        let Some(budget) = self.0 else { return answer.await };
        let _under_way = budget.begin(bytes);
        budget.room().await;
        let response = answer.await;
        budget.answer(response.as_json().get().len());
        response
    }
}

/// Calls behind their rules.
#[derive(Clone, Debug)]
pub(super) struct Ruled<S> {
    inner: S,
    rules: CallRules,
}

impl<S> RpcServiceT for Ruled<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            BatchResponse = MethodResponse,
            NotificationResponse = MethodResponse,
        > + Send
        + Sync
        + Clone
        + 'static,
{
    type MethodResponse = MethodResponse;
    type BatchResponse = MethodResponse;
    type NotificationResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        match self.rules.take(request.extensions(), request.method_name(), false) {
            Ok(()) => {
                let (kept, inner) = (Kept::of(request.extensions()), self.inner.clone());
                let bytes = bytes_of(&request);
                let answer = async move { inner.call(request).await };
                ResponseFuture::future(kept.answer(bytes, answer))
            }
            Err(failure) => ResponseFuture::ready(MethodResponse::error(request.id, failure)),
        }
    }

    fn batch<'a>(&self, mut batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let (mut kept, mut bytes) = (Kept(None), 0);
        for entry in batch.iter_mut() {
            let Ok(BatchEntry::Call(request)) = entry else { continue };
            kept = Kept::of(request.extensions());
            bytes += bytes_of(request);
            let taken = self.rules.take(request.extensions(), request.method_name(), true);
            if let Err(failure) = taken {
                *entry = Err(BatchEntryErr::new(request.id.clone(), failure));
            }
        }
        let inner = self.inner.clone();
        kept.answer(bytes, async move { inner.batch(batch).await })
    }

    /// Nothing of this server's is done by a notification.
    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        let response = MethodResponse::notification();
        ready(response.with_extensions(notification.extensions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_node::quotas::RateLimit;

    fn sender() -> Sender {
        Sender::of(&None, &HeaderMap::new()).expect("everybody is let in")
    }

    /// Those of one connection are clones of what came with its request.
    #[tokio::test]
    async fn subscriptions_of_a_connection_are_told_one_after_the_other() {
        let (here, elsewhere) = (sender(), sender());
        let also_here = here.clone();
        let first = here.turn().await;
        drop(elsewhere.turn().await);
        tokio::select! {
            biased;
            _ = also_here.turn() => panic!("the first one has not sent what it found"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        drop(also_here.turn().await);
    }

    /// Code of the refusal of a call from this address, if it is refused.
    fn refusal(
        rules: &CallRules,
        from: &str,
        (is_upgraded, in_batch): (bool, bool),
    ) -> Option<i32> {
        let mut extensions = Extensions::new();
        extensions.insert(Caller(from.parse().expect("an address")));
        extensions.insert(Sender { is_upgraded, ..sender() });
        rules.take(&extensions, "eth_chainId", in_batch).err().map(|failure| failure.code())
    }

    #[test]
    fn calls_of_an_address_count_where_a_request_has_several() {
        let rates = || AddressRates::new(RateLimit { per_second: 1 });
        for kind in [(true, false), (false, true)] {
            let rules = CallRules { rates: rates() };
            let calls: Vec<_> = (0..3).map(|_| refusal(&rules, "192.0.2.1", kind)).collect();
            assert_eq!(calls, [None, None, Some(-32_005)], "a second's worth, and one");
            assert_eq!(refusal(&rules, "192.0.2.2", kind), None, "another's is its own");
            assert_eq!(refusal(&rules, "127.0.0.1", kind), None);
        }
        let rules = CallRules { rates: rates() };
        // Its request was counted.
        let alone = (0..9).filter_map(|_| refusal(&rules, "192.0.2.1", (false, false)));
        assert_eq!(alone.count(), 0);
    }

    #[test]
    fn a_call_whose_sender_nobody_looked_at_is_refused() {
        let rules = CallRules { rates: Arc::default() };
        let refused = rules.take(&Extensions::new(), "eth_chainId", false).expect_err("nobody's");
        assert_eq!(refused.code(), 4_100);
    }
}
