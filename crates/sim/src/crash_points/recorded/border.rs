//! The run in which the committee changes: a member leaves, a learner takes a place, indices are
//! others, and another learner stays one.

use super::{Script, file_of, requests};
use crate::crash_points::offers::content_of;
use crate::crash_points::shared::{PlannedEnd, Shared};
use crate::epoch::{EpochConfig, change_to};
use quorate_crypto::KeyFile;
use quorate_engine::Message;
use quorate_types::{CommitteeFile, Time};

/// Hosts: the first four are the first members.
pub(super) const HOSTS: u16 = 6;

/// Hosts of the next members, by their index.
const NEXT: [usize; 4] = [4, 3, 0, 1];

/// Time at which the change is brought, in microseconds.
const BROUGHT: u64 = 50_000;

/// Times at which a client submits an operation, in microseconds: around the border, and after it.
const TIMES: [u64; 13] = [
    2_000, 20_000, 40_000, 49_000, 51_000, 56_000, 60_000, 110_000, 200_000, 300_000, 302_000,
    700_000, 7_800_000,
];

/// End of the recorded run: members that leave have done so.
pub(super) const END: Time = Time(8_000_000);

/// The change, as its client brings it.
pub(super) fn change(first: &EpochConfig, hosts: &[KeyFile]) -> PlannedEnd {
    let keys: Vec<KeyFile> = NEXT.iter().map(|host| hosts[*host].clone()).collect();
    let settings = first.settings.agreed();
    let change = change_to(first, CommitteeFile { settings, ..file_of(keys.iter()) }, &keys);
    let encoded = borsh::to_vec(&change).expect("encoding into memory");
    PlannedEnd { content: content_of(&Message::Change(encoded.into())), keys }
}

/// A member is away when the epoch ends: the one of index 1 in the next.
pub(super) fn script(shared: &Shared) -> Script {
    let mut requests = requests(shared, &TIMES);
    let change = shared.change.as_ref().expect("there is one");
    requests.push((Time(BROUGHT), 0, shared.client(), change.content.clone()));
    Script { requests, cut_off: vec![(3, 45_000..150_000)] }
}
