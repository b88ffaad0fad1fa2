use super::*;
use proptest::prelude::*;

/// Keys that often have a beginning in common.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xfe, 0xff]), 1..4)
}

proptest! {
    /// The order of the bits is that of the bytes, and a difference is the first.
    #[test]
    fn keys_differ_first_where_the_lower_has_0(a in keys(), b in keys()) {
        let (low, high) = if a < b { (&a, &b) } else { (&b, &a) };
        match difference(low, high) {
            None => prop_assert_eq!(low, high),
            Some(at) => {
                prop_assert_eq!((bit(low, at), bit(high, at)), (false, true));
                prop_assert!((0..at).all(|before| bit(low, before) == bit(high, before)));
            }
        }
        prop_assert_eq!(difference(low, high), difference(high, low));
    }

    /// The keys with a prefix are those from its lowest to before its end.
    #[test]
    fn a_prefix_is_an_interval(of in keys(), bits in 0u16..28, key in keys()) {
        let whole = Prefix::whole(&of);
        prop_assume!(bits <= whole.bits);
        for prefix in [whole.clone().cut(bits), whole] {
            let shares = (0..prefix.bits).all(|at| bit(&of, at) == bit(&key, at));
            let is_between = prefix.lowest() <= key.as_slice()
                && prefix.end().is_none_or(|end| key < end);
            prop_assert_eq!(prefix.departure(&key).is_none(), shares);
            prop_assert_eq!(is_between, shares, "{:?} {:?}", prefix, prefix.end());
        }
    }
}

#[test]
fn the_longest_keys_differ_below_the_highest_position() {
    let mut longest = vec![0xff; KEY_BYTES_MAX];
    let other = longest.clone();
    longest[KEY_BYTES_MAX - 1] = 0xfe;
    assert_eq!(difference(&longest, &other), Some(POSITIONS - 1));
}
