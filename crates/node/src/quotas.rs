//! Rates that callers and clients are held to.
//!
//! A client's frames are counted by the key by which it was let in ([`crate::clients`]): all
//! sessions of a listed client together, each session of another by itself. What exceeds the rate
//! is refused where it arrives, before anything of it is checked.

use crate::connections::counted;
use parking_lot::Mutex;
use quorate_crypto::IdentityKey;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So much of a rate may be taken at once.
const BURST: Duration = Duration::from_secs(1);

/// A rate, of which a second's worth may be taken at once; by default there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// Units a second; 0 for any number.
    pub per_second: u64,
}

/// Moment until which somebody has used up a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used(Option<Instant>);

impl Used {
    fn ahead(self, now: Instant) -> Duration {
        self.0.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

impl RateLimit {
    /// Returns `true` if any number may be taken.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.per_second == 0
    }

    /// Time to wait before anything more may be taken; zero where it may be now.
    #[must_use]
    pub fn wait(self, now: Instant, used: Used) -> Duration {
        if self.is_none() { Duration::ZERO } else { used.ahead(now).saturating_sub(BURST) }
    }

    /// Takes this much, whether it may be taken or not: generic cell rate algorithm.
    pub fn take(self, now: Instant, used: &mut Used, units: u64) {
        if !self.is_none() {
            let nanos = u128::from(units) * 1_000_000_000 / u128::from(self.per_second);
            let span = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            used.0 = now.checked_add(used.ahead(now).saturating_add(span)).or(used.0);
        }
    }
}

/// Limits of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Requests and queries a second.
    pub requests: RateLimit,
    /// Their bytes a second.
    pub bytes: RateLimit,
    /// Sessions connected at once.
    pub sessions_max: usize,
}

/// Most that is remembered of those that are not there.
const REMEMBERED_MAX: usize = 4_096;

/// What somebody has used up, for as long as that counts. Beyond [`REMEMBERED_MAX`] whoever has
/// used up least is forgotten.
#[derive(Debug)]
struct Remembered<K, V> {
    of: BTreeMap<K, (Instant, V)>,
    /// In the order in which they cease to count.
    ends: BTreeSet<(Instant, K)>,
}

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), ends: BTreeSet::new() }
    }
}

impl<K: Copy + Ord, V: Default> Remembered<K, V> {
    /// What is remembered of `who`, which is forgotten here.
    fn take(&mut self, who: K) -> V {
        let Some((end, value)) = self.of.remove(&who) else { return V::default() };
        self.ends.remove(&(end, who));
        value
    }

    /// Remembers what was taken until `end`, and forgets what counts no more.
    fn put(&mut self, now: Instant, who: K, (end, value): (Instant, V)) {
        self.take(who);
        self.of.insert(who, (end, value));
        self.ends.insert((end, who));
        while let Some((end, first)) = self.ends.first().copied() {
            if end > now && self.of.len() <= REMEMBERED_MAX {
                break;
            }
            self.take(first);
        }
    }
}

/// Accounts of clients that are connected, or were a moment ago.
#[derive(Debug)]
pub struct ClientQuotas {
    limits: ClientLimits,
    accounts: Mutex<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    /// Of clients with sessions.
    open: BTreeMap<IdentityKey, Account>,
    /// Of those that left, so that coming back renews nothing.
    left: Remembered<IdentityKey, Account>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    sessions: usize,
    requests: Used,
    bytes: Used,
}

impl ClientQuotas {
    /// Accounts with these limits each.
    #[must_use]
    pub fn new(limits: ClientLimits) -> Arc<Self> {
        Arc::new(Self { limits, accounts: Mutex::default() })
    }

    /// Opens a session of this client; `None` when it has as many as it may have.
    #[must_use]
    pub fn enter(self: &Arc<Self>, client: IdentityKey) -> Option<SessionPlace> {
        let Accounts { open, left } = &mut *self.accounts.lock();
        let account = open.entry(client).or_insert_with(|| left.take(client));
        if account.sessions >= self.limits.sessions_max.max(1) {
            return None;
        }
        account.sessions += 1;
        Some(SessionPlace { quotas: Arc::clone(self), client })
    }
}

impl Account {
    /// Moment until which what was taken counts; `None` where nothing was.
    fn end(&self) -> Option<Instant> {
        self.requests.0.max(self.bytes.0)
    }
}

/// Place of one session in its client's account; given back when dropped.
#[derive(Debug)]
pub struct SessionPlace {
    quotas: Arc<ClientQuotas>,
    client: IdentityKey,
}

impl SessionPlace {
    /// Charges a frame of so many bytes; `false` when the client takes more than its rate.
    #[must_use]
    pub fn charge(&self, bytes: usize) -> bool {
        let ClientLimits { requests, bytes: rate, .. } = self.quotas.limits;
        if requests.is_none() && rate.is_none() {
            return true;
        }
        let mut accounts = self.quotas.accounts.lock();
        let Some(account) = accounts.open.get_mut(&self.client) else { return true };
        let now = Instant::now();
        let wait = requests.wait(now, account.requests).max(rate.wait(now, account.bytes));
        if wait.is_zero() {
            requests.take(now, &mut account.requests, 1);
            rate.take(now, &mut account.bytes, bytes as u64);
        }
        wait.is_zero()
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        let Accounts { open, left } = &mut *self.quotas.accounts.lock();
        let Some(account) = open.get_mut(&self.client) else { return };
        account.sessions -= 1;
        if account.sessions == 0 {
            let account = *account;
            open.remove(&self.client);
            if let Some(end) = account.end() {
                left.put(Instant::now(), self.client, (end, account));
            }
        }
    }
}

/// Rates of the addresses that ask at HTTP doors.
#[derive(Debug, Default)]
pub struct AddressRates {
    limit: RateLimit,
    addresses: Mutex<Remembered<IpAddr, Used>>,
}

impl AddressRates {
    /// So many requests a second for each address of another machine.
    #[must_use]
    pub fn new(limit: RateLimit) -> Arc<Self> {
        Arc::new(Self { limit, addresses: Mutex::default() })
    }

    /// Takes a request of this address.
    ///
    /// # Errors
    /// The time to wait, when it has sent more than its rate.
    pub fn take(&self, address: IpAddr) -> Result<(), Duration> {
        if self.limit.is_none() || address.to_canonical().is_loopback() {
            return Ok(());
        }
        self.take_at(Instant::now(), counted(address))
    }

    fn take_at(&self, now: Instant, address: IpAddr) -> Result<(), Duration> {
        let mut addresses = self.addresses.lock();
        let mut used = addresses.take(address);
        let wait = self.limit.wait(now, used);
        if wait.is_zero() {
            self.limit.take(now, &mut used, 1);
        }
        if let Some(end) = used.0 {
            addresses.put(now, address, (end, used));
        }
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: IdentityKey = IdentityKey([1; 32]);
    const OTHER: IdentityKey = IdentityKey([2; 32]);

    #[test]
    fn a_second_of_a_rate_may_be_taken_at_once_and_comes_back() {
        let (rate, start) = (RateLimit { per_second: 10 }, Instant::now());
        let mut used = Used::default();
        let mut taken = 0;
        while rate.wait(start, used).is_zero() {
            rate.take(start, &mut used, 1);
            taken += 1;
        }
        assert_eq!(taken, 11, "a second's worth, and the one that exceeds it");
        assert_eq!(rate.wait(start, used), Duration::from_millis(100));
        let later = start + Duration::from_millis(100);
        assert!(rate.wait(later, used).is_zero());
        rate.take(later, &mut used, 1);
        assert!(!rate.wait(later, used).is_zero());
    }

    #[test]
    fn no_rate_takes_anything() {
        let (rate, now) = (RateLimit::default(), Instant::now());
        let mut used = Used::default();
        rate.take(now, &mut used, u64::MAX);
        assert!(rate.wait(now, used).is_zero());
    }

    #[test]
    fn what_is_larger_than_a_rate_goes_once_and_is_paid_for() {
        let (rate, now) = (RateLimit { per_second: 1_000 }, Instant::now());
        let mut used = Used::default();
        assert!(rate.wait(now, used).is_zero());
        rate.take(now, &mut used, 5_000);
        assert_eq!(rate.wait(now, used), Duration::from_secs(4));
    }

    fn quotas(per_second: u64, sessions_max: usize) -> Arc<ClientQuotas> {
        let (requests, bytes) = (RateLimit { per_second }, RateLimit::default());
        ClientQuotas::new(ClientLimits { requests, bytes, sessions_max })
    }

    #[test]
    fn sessions_of_one_client_share_its_rate_and_coming_back_does_not_renew_it() {
        let quotas = quotas(2, 2);
        let first = quotas.enter(KEY).expect("room");
        let second = quotas.enter(KEY).expect("room");
        assert!(quotas.enter(KEY).is_none(), "two at once");
        assert!(first.charge(1) && second.charge(1) && first.charge(1));
        assert!(!second.charge(1), "used up by both");
        let other = quotas.enter(OTHER).expect("room");
        assert!(other.charge(1), "another's is its own");
        drop((first, second));
        assert!(!quotas.enter(KEY).expect("room").charge(1), "used up before it left");
    }

    #[test]
    fn accounts_are_those_of_clients_that_are_there() {
        let quotas = quotas(0, 1);
        for number in 0..100 {
            drop(quotas.enter(IdentityKey([number; 32])).expect("room"));
        }
        let _here = quotas.enter(KEY);
        let Accounts { open, left } = &*quotas.accounts.lock();
        assert_eq!((open.len(), left.of.len()), (1, 0));
    }

    #[test]
    fn so_many_clients_that_left_are_remembered() {
        let quotas = quotas(1, 1);
        for number in 0..REMEMBERED_MAX as u32 + 10 {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&number.to_le_bytes());
            assert!(quotas.enter(IdentityKey(key)).expect("room").charge(1));
        }
        let Accounts { open, left } = &*quotas.accounts.lock();
        assert!(open.is_empty());
        assert!(left.of.len() <= REMEMBERED_MAX);
        assert_eq!(left.of.len(), left.ends.len());
    }

    #[test]
    fn whoever_used_up_least_is_forgotten_first() {
        let rates = AddressRates::new(RateLimit { per_second: 1 });
        let (now, greedy) = (Instant::now(), IpAddr::V4(0.into()));
        (0..2).for_each(|_| assert_eq!(rates.take_at(now, greedy), Ok(())));
        for number in 1..=2 * REMEMBERED_MAX as u32 {
            assert_eq!(rates.take_at(now, IpAddr::V4(number.into())), Ok(()));
        }
        assert_eq!(rates.take_at(now, greedy), Err(Duration::from_secs(1)));
        let later = now + Duration::from_secs(10);
        assert_eq!(rates.take_at(later, greedy), Ok(()));
        assert_eq!(rates.addresses.lock().of.len(), 1, "nothing else counts any more");
    }

    #[test]
    fn each_address_of_another_machine_has_a_rate_and_this_machine_none() {
        let rates = AddressRates::new(RateLimit { per_second: 1 });
        let [one, other, local] = ["192.0.2.1", "192.0.2.2", "127.0.0.1"]
            .map(|text| text.parse::<IpAddr>().expect("an address"));
        let now = Instant::now();
        assert_eq!(rates.take_at(now, one), Ok(()));
        assert_eq!(rates.take_at(now, one), Ok(()), "a second's worth, and one");
        assert_eq!(rates.take_at(now, one), Err(Duration::from_secs(1)));
        assert_eq!(rates.take_at(now, other), Ok(()));
        assert_eq!(rates.take_at(now + Duration::from_secs(1), one), Ok(()));
        (0..100).for_each(|_| assert_eq!(rates.take(local), Ok(())));
    }

    #[test]
    fn so_many_addresses_are_remembered() {
        let rates = AddressRates::new(RateLimit { per_second: 1 });
        let now = Instant::now();
        for number in 0..REMEMBERED_MAX as u32 + 10 {
            assert_eq!(rates.take_at(now, IpAddr::V4(number.into())), Ok(()));
        }
        assert_eq!(rates.addresses.lock().of.len(), REMEMBERED_MAX);
    }
}
