//! Names and counters, each a type of its own so that a view is never taken for a height.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, IdentityKey};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            BorshSerialize, BorshDeserialize, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The one after this. Saturates: a counter that a peer claims never overflows us.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

counter!(
    /// A period with one committee file.
    Epoch, u64, "e"
);
counter!(
    /// A protocol round with one leader. Genesis has view 0; the first proposal has view 1.
    View, u64, "v"
);
counter!(
    /// A position in the decided order. Genesis has height 0.
    Height, u64, "h"
);
counter!(
    /// A member's index in the committee file.
    ReplicaId, u16, "r"
);

impl ReplicaId {
    /// The index, for tables in member order.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl View {
    /// The one before this; genesis has none before it.
    #[must_use]
    pub fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

/// Monotonic time in microseconds, given by the host: since its start in a node, virtual in the
/// simulator. Never compared between replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Microseconds to whole milliseconds.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// The time that has passed since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

/// The hash of every field of a block's header.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct BlockId(pub Digest);

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

macro_rules! hash_id {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash,
            BorshSerialize, BorshDeserialize,
        )]
        pub struct $name(pub [u8; 32]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }
    };
}

hash_id!(
    /// Name of one deployment for ever: the hash of its genesis committee file
    /// ([`CommitteeFile::network_id`](crate::CommitteeFile::network_id)). It is part of everything
    /// that is signed, so nothing signed for one network is good on another. In files 64 hex
    /// digits.
    #[derive(Serialize, Deserialize)]
    #[serde(try_from = "String", into = "String")]
    NetworkId
);
hash_id!(
    /// Name of one epoch of one network: the hash of how it began
    /// ([`HandOver::begins`](crate::HandOver::begins)). Votes name it (★): two epochs of one number
    /// that began otherwise share no signature.
    EpochId
);

impl From<NetworkId> for String {
    fn from(id: NetworkId) -> Self {
        id.to_string()
    }
}

/// Text that names no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no network: its id has 64 hexadecimal digits")]
pub struct NotANetwork(String);

impl FromStr for NetworkId {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let mut id = Self::default();
        hex::decode_to_slice(text, &mut id.0).map_err(|_| NotANetwork(text.to_owned()))?;
        Ok(id)
    }
}

impl TryFrom<String> for NetworkId {
    type Error = NotANetwork;

    fn try_from(text: String) -> Result<Self, NotANetwork> {
        text.parse()
    }
}

/// A client is its public identity key.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct ClientId(pub IdentityKey);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}
