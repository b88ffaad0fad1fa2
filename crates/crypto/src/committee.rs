//! Loading of a committee's scheme from its members' keys.

use crate::bls::BlsScheme;
use crate::ed25519::Ed25519Scheme;
use crate::error::KeyError;
use crate::options::{KeyCache, SchemeKind};
use crate::scheme::Scheme;
use crate::voting_key::{PossessionProof, VotingKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Builds the scheme for a committee, from each member's voting key and proof of possession.
///
/// Refuses keys that are malformed, not canonical, the identity or outside the prime-order
/// subgroup, proofs that do not verify (without them a member could choose a key that cancels the
/// others' out of every aggregate), duplicates, and a committee of nobody. Keys for threshold
/// signatures come with their groups', from a dealer:
/// [`threshold_schemes`](crate::threshold_schemes) takes those.
pub fn committee_scheme(
    kind: SchemeKind,
    keys: &[(VotingKey, PossessionProof)],
    cache: KeyCache,
) -> Result<Arc<dyn Scheme>, KeyError> {
    if keys.is_empty() {
        return Err(KeyError::NoMembers);
    }
    if keys.len() > usize::from(u16::MAX) {
        return Err(KeyError::TooManyMembers { members: keys.len() });
    }
    refuse_duplicates(keys)?;
    #[cfg(feature = "stub")]
    if crate::stand_in::active() && matches!(kind, SchemeKind::Ed25519 | SchemeKind::Bls) {
        return Ok(Arc::new(crate::stand_in::StandInScheme::new(kind, keys, cache)));
    }
    Ok(match kind {
        SchemeKind::Ed25519 => Arc::new(Ed25519Scheme::new(keys)?),
        SchemeKind::Bls => Arc::new(BlsScheme::new(keys, cache)?),
        SchemeKind::BlsThreshold => return Err(KeyError::Dealt { kind }),
        #[cfg(feature = "stub")]
        SchemeKind::Stub => Arc::new(crate::stub::StubScheme::new(keys)?),
    })
}

fn refuse_duplicates(keys: &[(VotingKey, PossessionProof)]) -> Result<(), KeyError> {
    let mut seen = BTreeMap::new();
    for (second, (key, _)) in keys.iter().enumerate() {
        if let Some(first) = seen.insert(key, second) {
            return Err(KeyError::Duplicate { first, second });
        }
    }
    Ok(())
}
