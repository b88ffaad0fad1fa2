//! What is asked of records that come back from the own disk, whatever their protocol.

use quorate_types::Payload;

/// Checks that payloads name the bodies that their headers commit to. The log finds what a power
/// cut tore by a sum that whoever chooses the names could make fit; a header's root it could not.
///
/// # Errors
/// In words, which record does not.
pub(crate) fn check_bodies<'a>(
    what: &str,
    payloads: impl IntoIterator<Item = &'a Payload>,
) -> Result<(), String> {
    match payloads.into_iter().find(|payload| !payload.is_consistent()) {
        Some(payload) => {
            let height = payload.header.height;
            Err(format!("{what} names other bodies than the header of height {height} commits to"))
        }
        None => Ok(()),
    }
}
