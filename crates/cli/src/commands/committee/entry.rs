//! A member's public entry, as its operator hands it out.

use crate::commands::keys::NO_ADDRESS;
use crate::failure::Failure;
use quorate_types::Member;
use serde::Deserialize;
use std::fs;
use std::path::Path;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryText {
    members: Vec<Member>,
}

/// Reads the one entry in a file.
pub(super) fn read(path: &Path) -> Result<Member, Failure> {
    let refused = |reason: &str| {
        Failure::usage(format!(
            "{} is no member's entry, as `quorate keys show` prints it: {reason}",
            path.display()
        ))
    };
    let text = fs::read_to_string(path).map_err(|error| refused(&error.to_string()))?;
    // Without the line: whoever names a key file by mistake has it not shown.
    let entry: EntryText = toml::from_str(&text).map_err(|error| refused(error.message()))?;
    let count = entry.members.len();
    let [member] = <[Member; 1]>::try_from(entry.members)
        .map_err(|_| refused(&format!("it holds {count} entries, where one is needed")))?;
    Ok(member)
}

/// Checks that a member can be reached where its entry says.
pub(super) fn check_address(index: usize, address: &str) -> Result<(), Failure> {
    let place = address.rsplit_once(':');
    let is_one = place.is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    is_one.then_some(()).ok_or_else(|| {
        Failure::usage(format!(
            "member {index} has the address '{address}': write its host and port into its entry, or \
             give --address {index}=HOST:PORT"
        ))
    })
}

/// The entry of a member that takes the place of another: its weight, and its address where the
/// newcomer's entry has none.
pub(super) fn in_place_of(former: &Member, entry: Member) -> Member {
    let is_open = entry.address == NO_ADDRESS;
    let address = if is_open { former.address.clone() } else { entry.address.clone() };
    Member { address, weight: former.weight, ..entry }
}
