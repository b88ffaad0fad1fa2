use super::*;
use borsh::{from_slice, to_vec};

#[test]
fn hashes_as_blake3_does() {
    assert_eq!(
        hash(b"").to_hex(),
        "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    );
}

/// With and without a rest beside whole vectors.
#[test]
fn blocks_side_by_side_are_hashed_as_each_alone() {
    let key = b"quorate: a key of 32 bytes, yes!";
    let block = |number: u8| std::array::from_fn(|at| number.wrapping_mul(at as u8 + 1));
    let blocks: Vec<[u8; 64]> = (0..100).map(block).collect();
    for count in 0..blocks.len() {
        let alone: Vec<_> = blocks[..count].iter().map(|one| hash_keyed(key, one)).collect();
        assert_eq!(hash_keyed_blocks(key, &blocks[..count]), alone, "{count}");
    }
}

#[test]
fn parts_are_hashed_injectively() {
    let domain = "quorate test a";
    let lists: [&[&[u8]]; 8] = [
        &[],
        &[b""],
        &[b"", b""],
        &[b"abc"],
        &[b"ab", b"c"],
        &[b"a", b"bc"],
        &[b"abc", b""],
        &[b"", b"abc"],
    ];
    for (i, left) in lists.iter().enumerate() {
        for (j, right) in lists.iter().enumerate() {
            assert_eq!(hash_parts(domain, left) == hash_parts(domain, right), i == j, "{i} {j}");
        }
        assert_ne!(hash_parts(domain, left), hash_parts("quorate test b", left));
    }
}

/// Around the size at which what was gathered is hashed.
#[test]
fn parts_one_by_one_are_hashed_as_a_list_is() {
    const MAX: usize = PartsHasher::GATHERED_MAX;
    let data: Vec<u8> = (0..2 * MAX).map(|at| at as u8).collect();
    let lengths = [0, 1, 63, 64, MAX - 17, MAX - 16, MAX - 9, MAX - 8, MAX - 7, MAX, MAX + 1];
    for first in lengths {
        for second in lengths {
            let parts = [&data[..first], &data[1..=second], b"end"];
            let mut hasher = PartsHasher::new("quorate test a");
            for part in parts {
                hasher.part(part);
                assert!(hasher.gathered.len() <= MAX, "{first}, {second}");
            }
            let expected = hash_parts("quorate test a", &parts);
            assert_eq!(hasher.finish(), expected, "{first}, {second}");
        }
    }
}

#[test]
fn digest_is_shown_short_and_written_whole() {
    let digest = hash(b"");
    assert_eq!(format!("{digest} {digest:?}"), "af1349b9 af1349b9");
    assert_eq!(Digest::from_hex(&digest.to_hex()), Ok(digest));
    assert_eq!(digest.to_hex().parse(), Ok(digest));
    assert_eq!(digest.as_ref(), digest.0);
    assert_eq!(Digest::from_hex("af13"), Err(ParseDigestError { length: 4 }));
    assert_eq!(Digest::from_hex(&"zz".repeat(32)), Err(ParseDigestError { length: 64 }));
}

#[test]
fn digest_golden_bytes() {
    let digest = Digest(std::array::from_fn(|i| i as u8));
    let bytes = to_vec(&digest).unwrap();
    assert_eq!(bytes, (0..32).collect::<Vec<u8>>());
    assert_eq!(from_slice::<Digest>(&bytes).unwrap(), digest);
    assert_eq!(to_vec(&Digest::ZERO).unwrap(), [0; 32]);
}

#[cfg(feature = "count")]
#[test]
fn counts_what_was_hashed() {
    use crate::counts::{OpCounts, take};
    let hashed = |hashes, hashed_bytes| OpCounts { hashes, hashed_bytes, ..OpCounts::default() };
    take();
    hash(b"12345");
    hash(b"123");
    assert_eq!(take(), hashed(2, 8));
    hash_keyed(&[7; 32], b"12345");
    hash_keyed(&[7; 32], b"123");
    assert_eq!(take(), hashed(2, 8));
    hash_parts("quorate test a", &[b"12", b"3"]);
    hash_parts("quorate test a", &[]);
    assert_eq!(take(), hashed(2, 10 + 9));
    let mut hasher = PartsHasher::new("quorate test a");
    hasher.part(b"12");
    hasher.part(b"3");
    hasher.finish();
    assert_eq!(take(), hashed(1, 10 + 9));
    assert_eq!(take(), OpCounts::default());
}
