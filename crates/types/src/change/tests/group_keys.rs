//! Threshold keys over a change.

use super::{Mutant, TIME, assert_noticed};
use crate::committee::tests::{dealt, file};
use crate::{Change, ChangeError, Committee, CommitteeFile};
use quorate_crypto::{KeyCache, Sharing};

/// Hexadecimal digits of one public share, of which a voting key has three.
const SHARE_DIGITS: usize = 192;

/// Checks the change of a committee with threshold keys to what this makes of its file.
fn checked(edit: impl FnOnce(&mut CommitteeFile)) -> Result<(), ChangeError> {
    let (present, _) = dealt(7);
    let ends = Committee::load(&present, KeyCache::Off).expect("a sound file");
    let mut file = present.next_epoch(ends.network());
    edit(&mut file);
    let (network, epoch, (not_before, expires)) = (ends.network(), ends.epoch(), TIME);
    Change { network, epoch, file, not_before, expires }.check(&ends).map(drop)
}

/// Puts another dealing's keys in, all or all but those of the fast path.
fn deal_anew(file: &mut CommitteeFile, keeps_fast: bool) {
    let (other, _) = dealt(8);
    let kept = if keeps_fast { SHARE_DIGITS } else { 0 };
    for (member, new) in file.members.iter_mut().zip(&other.members) {
        member.voting.replace_range(kept.., &new.voting[kept..]);
    }
    let before = file.groups.take().expect("threshold keys");
    let mut groups = other.groups.expect("threshold keys");
    if keeps_fast {
        groups.fast = before.fast;
    }
    file.groups = Some(groups);
}

/// ★ A group key goes on with the same holders of the same shares, or not at all.
fn check_no_group_key_goes_on_without_its_holders() {
    let kept = |sharing| Err(ChangeError::GroupKept(sharing));
    let replace = |file: &mut CommitteeFile| {
        let newcomer = self::file(5).members.remove(4);
        file.members[1].identity = newcomer.identity;
        file.members[1].identity_proof = newcomer.identity_proof;
    };
    assert_eq!(checked(replace), kept(Sharing::Fast), "who leaves has a share");
    assert_eq!(checked(|file| deal_anew(file, true)), kept(Sharing::Fast), "one of three is kept");
    assert_eq!(checked(|file| deal_anew(file, false)), Ok(()), "all are new");
    let setting = |file: &mut CommitteeFile| file.settings.leader_tenure = 2;
    assert_eq!(checked(setting), Ok(()), "members, order and shares are the same");
}

#[test]
fn no_group_key_goes_on_without_its_holders() {
    check_no_group_key_goes_on_without_its_holders();
}

#[test]
fn a_group_key_that_goes_on_is_noticed() {
    assert_noticed(Mutant::GroupKeyKept, check_no_group_key_goes_on_without_its_holders);
}

#[test]
fn the_refusal_says_whose_keys_they_are_and_what_to_do() {
    let said = ChangeError::GroupKept(Sharing::Slow).to_string();
    for part in ["its slow group's key", "former holders could sign", "`quorate keys dkg --next`"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}
