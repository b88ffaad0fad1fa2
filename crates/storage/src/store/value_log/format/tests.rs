use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A frame of two entries, as it is on disk. A change of it needs a new format.
#[test]
fn golden_bytes() {
    let mut written = Vec::new();
    put_entry(&mut written, b"key", Some(b"value"));
    put_entry(&mut written, b"gone", None);
    let golden = ["0577fc1a0300050000006b657976616c7565", "ac2a149c0400ffffffff676f6e65"];
    assert_eq!(hex(&written), golden.concat());
    let link = Link { batch: 7, part: 2, commits: true, crc: crc32c(&written) };
    let frame = Frame { link, before: 0xaabb_ccdd, length: 32, first: 5 };
    let head = frame.encode(0x0102_0304);
    let golden = "51564631200000000700000000000000020000000500000001000000ddccbbaaf23bb28b4b6c7fdf";
    assert_eq!(hex(&head), golden);
    assert_eq!(Frame::read(&head, 0x0102_0304), Some(frame));
    assert_eq!(Frame::read(&head, 0x0102_0305), None, "of another segment");
    let found: Vec<_> = entries(&written).map(|(at, entry)| (at, entry.key, entry.value)).collect();
    assert_eq!(found, [(0, &b"key"[..], Some(&b"value"[..])), (18, b"gone", None)]);
}

#[test]
fn golden_bytes_of_a_segment() {
    let before = Link { batch: 6, part: 3, commits: false, crc: 0x1122_3344 };
    let head = SegmentHead { number: 9, salt: 0x0102_0304, before };
    let (owner, bytes) = (Owner::nobody(), head.encode(&Owner::nobody()));
    let fields = bytes.strip_prefix(&owner.record(FORMAT)[..]).expect("the owner comes first");
    let golden = "09000000040302010600000000000000030000000044332211";
    assert_eq!(hex(&fields[..FIELDS - 4]), golden);
    assert_eq!(SegmentHead::read("here", &bytes, &owner), Ok(Some(head)));
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert_eq!(SegmentHead::read("here", &damaged, &owner), Ok(None), "at {at}");
    }
}
