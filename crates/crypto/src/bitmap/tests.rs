use super::*;
use borsh::{from_slice, to_vec};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn golden_bytes() {
    let bitmap = Bitmap::from_indices(10, [0, 3, 9]);
    assert_eq!(to_vec(&bitmap).unwrap(), [10, 0, 0b0000_1001, 0b0000_0010]);
    assert_eq!(to_vec(&Bitmap::new(0)).unwrap(), [0, 0]);
    assert_eq!(to_vec(&Bitmap::new(16)).unwrap(), [16, 0, 0, 0]);
    assert_eq!(format!("{bitmap:?}"), "{0, 3, 9}/10");
}

#[test]
fn insert_says_whether_it_was_new() {
    let mut bitmap = Bitmap::new(3);
    assert!(bitmap.is_empty());
    assert!(bitmap.insert(2));
    assert!(!bitmap.insert(2));
    assert!(bitmap.contains(2));
    assert!(!bitmap.contains(3));
    assert!(!bitmap.is_empty());
    assert!(!Bitmap::from_indices(8, 0..8).contains(8));
    assert_eq!(Bitmap::from_indices(10, [0, 9]).as_bytes(), [1, 2]);
}

#[test]
#[should_panic(expected = "member 3 is out of range for a bitmap of 3 members")]
fn insert_out_of_range_panics() {
    Bitmap::new(3).insert(3);
}

#[test]
pub(crate) fn bits_beyond_the_last_member_are_refused() {
    for members in [1_usize, 3, 7, 9, 15, 209] {
        for bit in members..members.div_ceil(8) * 8 {
            let mut bytes = to_vec(&Bitmap::from_indices(members, 0..members)).unwrap();
            *bytes.last_mut().unwrap() |= 1 << (bit % 8);
            let error = from_slice::<Bitmap>(&bytes).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the bitmap names a member beyond the {members} there are")
            );
            assert_eq!(
                Bitmap::from_bytes(members, &bytes[2..]),
                Err(BitmapError::Padding { members })
            );
        }
    }
}

#[test]
fn wrong_lengths_are_refused() {
    for found in [0, 1, 3] {
        assert_eq!(
            Bitmap::from_bytes(10, &vec![0; found]),
            Err(BitmapError::Length { members: 10, expected: 2, found })
        );
    }
    let bytes = to_vec(&Bitmap::new(10)).unwrap();
    assert!(from_slice::<Bitmap>(&bytes[..3]).is_err(), "truncated");
    assert!(from_slice::<Bitmap>(&[&bytes[..], &[0]].concat()).is_err(), "trailing byte");
}

#[test]
fn a_bitmap_for_another_committee_is_another_bitmap() {
    assert_ne!(Bitmap::from_indices(9, [1]), Bitmap::from_indices(10, [1]));
}

proptest! {
    #[test]
    fn behaves_like_a_set(
        members in 0_usize..300,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..100),
    ) {
        let picks: Vec<usize> =
            picks.iter().filter(|_| members > 0).map(|pick| pick.index(members)).collect();
        let model: BTreeSet<usize> = picks.iter().copied().collect();
        let bitmap = Bitmap::from_indices(members, picks);
        let listed: Vec<usize> = model.iter().copied().collect();
        prop_assert_eq!(bitmap.iter().collect::<Vec<_>>(), listed);
        prop_assert_eq!(bitmap.count(), model.len());
        prop_assert_eq!(bitmap.is_empty(), model.is_empty());
        prop_assert_eq!(bitmap.members(), members);
        let absent: Vec<usize> = (0..members).filter(|member| !model.contains(member)).collect();
        prop_assert_eq!(bitmap.absent().collect::<Vec<_>>(), absent);
        prop_assert_eq!(from_slice::<Bitmap>(&to_vec(&bitmap).unwrap()).unwrap(), bitmap);
    }

    /// Whatever decodes, encodes to the same bytes: a set has one encoding.
    #[test]
    fn decoding_is_canonical(
        members in 0_u16..40,
        bits in prop::collection::vec(any::<u8>(), 0..7),
    ) {
        let mut bytes = members.to_le_bytes().to_vec();
        bytes.extend(bits);
        if let Ok(bitmap) = from_slice::<Bitmap>(&bytes) {
            prop_assert_eq!(to_vec(&bitmap).unwrap(), bytes);
        }
    }
}
