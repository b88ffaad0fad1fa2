use super::{Owner, OwnerRecord, Role};
use crate::StorageError;
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_types::NetworkId;

const FORMAT: u32 = 3;

fn owner() -> Owner {
    Owner {
        formerly: Vec::new(),
        network: NetworkId([0xab; 32]),
        member: IdentityKey([0xcd; 32]),
        role: Role::Validator,
        protocol: "jolteon".into(),
    }
}

fn check(record: &[u8], format: u32, owner: &Owner) -> Result<(), StorageError> {
    let (record, rest) = OwnerRecord::split(record).expect("whole");
    assert_eq!(rest, b"");
    record.check("/data/log", format, owner)
}

/// The record on disk. A change of it needs new formats of all files that begin with it.
#[test]
fn golden_bytes() {
    let hex: String = owner().record(FORMAT).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, include_str!("golden.txt").trim());
}

#[test]
fn a_difference_in_any_field_is_refused_and_named() {
    let own = owner();
    assert_eq!(check(&own.record(FORMAT), FORMAT, &own), Ok(()));
    let others = [
        (Owner { network: NetworkId([1; 32]), ..owner() }, "of network 0101010101010101…"),
        (Owner { member: IdentityKey([2; 32]), ..owner() }, "validator 0202020202020202…"),
        (Owner { role: Role::Learner, ..owner() }, "learner cdcdcdcdcdcdcdcd…"),
        (Owner { role: Role::Shard(7), ..owner() }, "shard 7 of authority cdcdcdcdcdcdcdcd…"),
        (Owner { protocol: "pbft".into(), ..owner() }, "(pbft)"),
    ];
    for (other, difference) in others {
        let refused = check(&other.record(FORMAT), FORMAT, &own).expect_err("somebody else's");
        let said = refused.to_string();
        assert!(said.starts_with(&format!("/data/log belongs to {other}, and {own}")), "{said}");
        assert!(said.contains(difference), "{said}");
        assert!(!own.to_string().contains(difference), "{own}");
    }
}

#[test]
fn a_difference_that_is_not_looked_for_is_missed() {
    assert_noticed(Mutant::OpenForeign, a_difference_in_any_field_is_refused_and_named);
}

#[test]
fn another_format_is_refused_whoever_owns_it() {
    let other = Owner { network: NetworkId([1; 32]), ..owner() };
    let refused = check(&other.record(FORMAT + 1), FORMAT, &owner()).expect_err("another format");
    let file = "/data/log".to_owned();
    assert_eq!(refused, StorageError::Format { file, found: FORMAT + 1, expected: FORMAT });
}

#[test]
fn a_damaged_record_names_nobody() {
    let record = owner().record(FORMAT);
    assert!(record.len() < OwnerRecord::BYTES_MAX);
    for at in 0..record.len() {
        let mut damaged = record.clone();
        damaged[at] ^= 1;
        assert_eq!(OwnerRecord::split(&damaged), None, "byte {at}");
        assert_eq!(OwnerRecord::split(&record[..at]), None, "cut after {at}");
    }
}
