use super::{Failure, Member, find};

/// A member with this identity, of which nothing else is looked at.
fn member(identity: &str) -> Member {
    Member {
        identity: identity.into(),
        identity_proof: String::new(),
        voting: String::new(),
        possession: String::new(),
        address: String::new(),
        weight: 1,
    }
}

#[test]
fn a_member_is_named_by_its_index_or_enough_digits_of_its_key() {
    let members = ["00000001aa", "00000001ab", "12345678cd"].map(member);
    let found = |who: &str| {
        find(&members, who).map_err(|failure| match failure {
            Failure::Usage(said) => said,
            other => panic!("another failure: {other:?}"),
        })
    };
    for (who, index) in [("2", 2), ("r0", 0), ("00000001ab", 1), ("12345678", 2), ("12345678CD", 2)]
    {
        assert_eq!(found(who), Ok(index));
    }
    let both = "the identity keys of members 0 and 1 begin with '00000001': give more digits";
    assert_eq!(found("00000001"), Err(both.into()));
    for (who, said) in [
        ("3", "there is no member 3: their indices are 0 to 2"),
        ("87654321", "no member's identity key begins with '87654321'"),
        ("1234ab", "'1234ab' names no member"),
    ] {
        let refused = found(who).expect_err("nobody's name");
        assert!(refused.starts_with(said), "{refused}");
    }
}
