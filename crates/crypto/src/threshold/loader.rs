//! Loading of schemes from a committee's keys.

use super::ThresholdScheme;
use super::consistency::read_sharing;
use super::keys::split_key;
use super::sharing::{BySharing, Sharing};
use crate::VotingKey;
use crate::error::KeyError;
use crate::mutants::{self, Mutant};
use crate::scheme::Scheme;
use std::sync::Arc;

/// Builds a committee's scheme for each sharing, from every member's public shares (288 bytes, as
/// [`VotingSecret::public`](crate::VotingSecret::public) gives them), the groups' keys (96 bytes
/// each) and the thresholds.
///
/// Refuses a sharing whose public shares are not points of one polynomial through the group's key,
/// and sharings of one secret ★, which the groups' keys give away.
///
/// # Errors
/// The first thing that is wrong, with the member or the sharing whose it is.
pub fn threshold_schemes(
    keys: &[VotingKey],
    groups: &BySharing<VotingKey>,
    thresholds: &BySharing<usize>,
) -> Result<BySharing<Arc<dyn Scheme>>, KeyError> {
    let mut publics = Vec::with_capacity(keys.len());
    for (member, key) in keys.iter().enumerate() {
        let in_member = |cause| KeyError::Member { member, cause: Box::new(cause) };
        publics.push(split_key(&key.0).map_err(in_member)?);
    }
    refuse_one_secret(groups)?;
    BySharing::try_from_fn(|sharing| {
        let publics: Vec<&[u8]> = publics.iter().map(|parts| *parts.get(sharing)).collect();
        load(&groups.get(sharing).0, &publics, *thresholds.get(sharing))
            .map_err(|cause| KeyError::Sharing { sharing, cause: Box::new(cause) })
    })
}

fn load(group: &[u8], publics: &[&[u8]], threshold: usize) -> Result<Arc<dyn Scheme>, KeyError> {
    #[cfg(feature = "stub")]
    if crate::stand_in::active() {
        return Ok(Arc::new(crate::stand_in::StandInThreshold::new(group, publics, threshold)));
    }
    let (group, shares) = read_sharing(group, publics, threshold)?;
    Ok(Arc::new(ThresholdScheme::new(group, shares, threshold)))
}

fn refuse_one_secret(groups: &BySharing<VotingKey>) -> Result<(), KeyError> {
    let [fast, slow, execution] = Sharing::ALL;
    for (first, second) in [(fast, slow), (fast, execution), (slow, execution)] {
        let same = groups.get(first) == groups.get(second);
        if same && !mutants::active(Mutant::SharingsShareASecret) {
            return Err(KeyError::OneSecret { first, second });
        }
    }
    Ok(())
}
