//! The state of another network that a network begins with.

use crate::{Height, NetworkId};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::Digest;
use serde::{Deserialize, Serialize};

/// Section `from_state` of a committee file that founds a network: it goes on from what another
/// one, which has lost more members than it tolerates, had executed up to a height.
///
/// The root is what members of that network certified; the digest of the snapshot names the bytes
/// themselves, with the sessions of clients, of which the root has the history alone. Both are part
/// of the new network's identity.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, BorshSerialize, BorshDeserialize,
)]
#[serde(deny_unknown_fields)]
pub struct FromState {
    /// Network whose state it is.
    pub network: NetworkId,
    /// Last height whose effects are in it.
    pub height: Height,
    /// [`Header::root`](crate::Header::root) at that height.
    #[serde(with = "in_hex")]
    pub root: Digest,
    /// [`Manifest::digest`](crate::Manifest::digest) of the snapshot.
    #[serde(with = "in_hex")]
    pub snapshot: Digest,
}

/// All digits of a digest, as files have it.
mod in_hex {
    use quorate_crypto::Digest;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&digest.to_hex())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}
