use super::*;
use borsh::{from_slice, to_vec};

#[test]
fn hashes_as_blake3_does() {
    assert_eq!(
        hash(b"").to_hex(),
        "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    );
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

#[test]
fn digest_is_shown_short_and_written_whole() {
    let digest = hash(b"");
    assert_eq!(format!("{digest} {digest:?}"), "af1349b9 af1349b9");
    assert_eq!(Digest::from_hex(&digest.to_hex()), Ok(digest));
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
    crate::counts::take();
    hash(b"12345");
    hash_parts("quorate test a", &[b"12", b"3"]);
    assert_eq!(crate::counts::take().hashed_bytes, 5 + 10 + 9);
    assert_eq!(crate::counts::take(), crate::counts::OpCounts::default());
}
