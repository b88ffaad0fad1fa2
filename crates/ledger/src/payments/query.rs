//! Queries of what was ordered, and the check of their answers.

use super::keys;
use crate::kv::{Answer, Page, Query, SCAN_ENTRIES_MAX, Scan, verify_answer};
use crate::map::ProofError;
use borsh::BorshDeserialize;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::OutputId;
use quorate_payments::committee::Ordered;
use quorate_payments::release::{Decided, Standing};
use quorate_types::service::Proven;

/// Most changes that one query asks for.
pub const ORDERED_MAX: u32 = SCAN_ENTRIES_MAX;

/// Decisions that one change tells at most: an answer shows at least one change.
const DECISIONS_MAX: usize = 512;

/// Decisions in parts that an answer has room for.
pub(super) fn in_parts(decided: &Decided) -> impl Iterator<Item = Decided> + '_ {
    decided.chunks(DECISIONS_MAX).map(<[_]>::to_vec)
}

/// Reason for which an answer tells nothing of releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderedError {
    /// It is not true of the state that members certified.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// It does not decode.
    #[error("the committee's state is not that of releases: it runs another service or version")]
    OtherService,
    /// A number is left out.
    #[error("the committee's log leaves out number {0}")]
    Gap(u64),
}

/// Query of a coin's standing.
#[must_use]
pub fn standing_query(coin: OutputId) -> Query {
    Query::Get { key: keys::coin(coin).into() }
}

/// The standing of a coin in the state with this root, of whatever epoch; the default where nothing
/// is known of it.
///
/// # Errors
/// When the answer does not show it.
pub fn read_standing(
    root: Digest,
    coin: OutputId,
    proven: &Proven,
) -> Result<Standing, OrderedError> {
    match verify_answer(root, &standing_query(coin), proven)? {
        Answer::Value(None) => Ok(Standing::default()),
        Answer::Value(Some(value)) => decode(&value),
        Answer::Page(_) => Err(ProofError::OtherAnswer.into()),
    }
}

/// Query of at most `max` changes from number `from` on, 1 to [`ORDERED_MAX`].
#[must_use]
pub fn ordered_query(from: u64, max: u32) -> Query {
    let max = max.clamp(1, ORDERED_MAX);
    let to = keys::event(from.saturating_add(max.into()));
    Query::Scan(Scan { from: keys::event(from).into(), to: Some(to.into()), limit: max })
}

/// Changes in the state with this root from number `from` on: none is left out before the last of
/// them (★). There may be more behind it.
///
/// # Errors
/// When the answer does not show them.
pub fn read_ordered(
    root: Digest,
    from: u64,
    max: u32,
    proven: &Proven,
) -> Result<Vec<Ordered>, OrderedError> {
    match verify_answer(root, &ordered_query(from, max), proven)? {
        Answer::Page(page) => read_page(from, &page),
        Answer::Value(_) => Err(ProofError::OtherAnswer.into()),
    }
}

fn read_page(from: u64, page: &Page) -> Result<Vec<Ordered>, OrderedError> {
    let read = |(number, entry): (u64, &crate::kv::Entry)| {
        let is_next = entry.key == keys::event(number);
        if !is_next && !mutants::active(Mutant::PayFollowOverGap) {
            return Err(OrderedError::Gap(number));
        }
        decode(&entry.value)
    };
    (from..).zip(&page.entries).map(read).collect()
}

fn decode<T: BorshDeserialize>(value: &[u8]) -> Result<T, OrderedError> {
    T::try_from_slice(value).map_err(|_| OrderedError::OtherService)
}
