use super::record::{self, HEADER_BYTES, RecordHeader};
use super::{Durability, FORMAT, Log, LogConfig, RECORDS};
use crate::disk::{Disk, MemoryDisk};
use crate::{Owner, StorageError};
use bytes::Bytes;

type Records = Vec<(u8, Vec<u8>)>;

fn open(disk: &MemoryDisk, segment_bytes: u64) -> Result<(Log, Records), StorageError> {
    open_as(&Owner::nobody(), disk, segment_bytes)
}

fn open_as(
    owner: &Owner,
    disk: &MemoryDisk,
    segment_bytes: u64,
) -> Result<(Log, Records), StorageError> {
    let mut records = Records::new();
    let config = LogConfig { segment_bytes, ..LogConfig::default() };
    let log = Log::open(Box::new(disk.clone()), RECORDS, owner, config, &mut |found| {
        records.push((found.kind, found.payload.to_vec()));
        Ok(())
    })?;
    Ok((log, records))
}

fn read(disk: &MemoryDisk, name: &str) -> Vec<u8> {
    let file = disk.open(name).expect("there");
    let mut bytes = vec![0; usize::try_from(file.length().expect("known")).expect("small")];
    file.read_at(0, &mut bytes).expect("read");
    bytes
}

/// The format on disk. A change of it needs a new format number.
#[test]
fn golden_bytes() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 1_024).expect("opened");
    log.append(1, b"he", &Bytes::from("ad")).expect("appended");
    log.commit().expect("committed");
    log.append(17, b"", &Bytes::from("next")).expect("appended");
    log.commit().expect("committed");
    // The segment's own, and two.
    let mut rest = &read(&disk, "log-000000000001")[..];
    let mut lines = String::new();
    for bytes in [168, 72, 72] {
        let (record, after) = rest.split_at(bytes);
        lines.push_str(&format!("{}\n", hex(record)));
        rest = after;
    }
    assert_eq!(lines, include_str!("golden.txt"));
    assert_eq!(rest, [0; 1_024 - 168 - 2 * 72]);
}

fn somebody_else() -> Owner {
    Owner { member: quorate_crypto::IdentityKey([1; 32]), ..Owner::nobody() }
}

#[test]
fn somebody_else_s_log_is_refused_and_left_as_it_is() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 512).expect("opened");
    for n in 0..6 {
        log.append(1, &[n; 200], &Bytes::new()).expect("appended");
        log.commit().expect("committed");
    }
    // Its owner would find these behind it, and clear them.
    let last = RECORDS.file(log.segment().number);
    disk.open(&last).expect("there").write_at(log.end, &[b"torn"]).expect("written");
    log.prune_before(2).expect("pruned");
    drop(log);
    let content = |disk: &MemoryDisk| -> Vec<Vec<u8>> {
        disk.list().expect("listed").iter().map(|name| read(disk, name)).collect()
    };
    let before = content(&disk);
    let refused = open_as(&somebody_else(), &disk, 512).err().expect("refused");
    let StorageError::Foreign { place, owner, claimant } = refused else { panic!("{refused}") };
    assert_eq!([owner, claimant], [Owner::nobody(), somebody_else()].map(|o| o.to_string()));
    assert_eq!(place, format!("memory:{last}"));
    assert_eq!(content(&disk), before);
    assert!(open(&disk, 512).is_ok());
}

/// Segments of before owners were written down begin with the format alone.
#[test]
fn a_log_of_another_format_is_refused() {
    let mut disk = MemoryDisk::new();
    let file = disk.create(&RECORDS.file(1), 1_024).expect("made");
    let old: Vec<Vec<u8>> = include_str!("golden_without_owner.txt").lines().map(unhex).collect();
    file.write_at(0, &[&old.concat()]).expect("written");
    drop(file);
    let refused = open(&disk, 1_024).map(drop).expect_err("refused");
    let file = format!("memory:{}", RECORDS.file(1));
    assert_eq!(refused, StorageError::Format { file, found: 2, expected: FORMAT });
}

fn unhex(line: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&line[at..at + 2], 16).expect("digits");
    (0..line.len()).step_by(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_header_says_what_it_was_made_from() {
    let key = RECORDS.key(3);
    let payload = key.checksum(&[b"payload"]);
    let header = RecordHeader { length: 7, sequence: 9, group: 8, kind: 17, payload };
    let mut bytes = header.encode(&key).to_vec();
    bytes.extend_from_slice(b"payload");
    assert_eq!(RecordHeader::read(&bytes, &key), Some(header));
    assert!(header.is_whole(&bytes, &key));
    assert!(!header.is_whole(&bytes[..HEADER_BYTES + 6], &key), "cut short");
    assert_eq!(RecordHeader::read(&bytes, &RECORDS.key(4)), None, "another segment's");
    assert_eq!(RecordHeader::read(&bytes[..HEADER_BYTES - 1], &key), None, "cut short");
}

#[test]
fn records_come_back_in_order_across_segments_of_any_size() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 512).expect("opened");
    let mut written = Records::new();
    for n in 0..40_usize {
        let payload = vec![u8::try_from(n).expect("small"); n * 37 % 700];
        log.append(1, &payload, &Bytes::new()).expect("appended");
        log.commit().expect("committed");
        written.push((1, payload));
    }
    assert!(disk.list().expect("listed").len() > 10, "several segments");
    disk.crash(&mut || true);
    assert_eq!(open(&disk, 512).expect("opened").1, written);
}

#[test]
fn the_old_content_of_a_recycled_segment_is_never_read() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 512).expect("opened");
    let mut written = Records::new();
    for n in 0..4 {
        log.append(1, &[n; 200], &Bytes::new()).expect("appended");
        log.commit().expect("committed");
        written.push((1, vec![n; 200]));
    }
    let old = read(&disk, &RECORDS.file(1));
    // The second segment holds what the first held, where nothing of its own is written yet.
    log.append(1, &[9; 8], &Bytes::new()).expect("appended");
    log.commit().expect("committed");
    written.push((1, vec![9; 8]));
    let number = log.segment().number;
    assert!(number > 1);
    let end = usize::try_from(log.end).expect("small");
    let reused = disk.open(&RECORDS.file(number)).expect("there");
    reused.write_at(log.end, &[&old[end..]]).expect("written");
    drop(log);
    assert_eq!(open(&disk, 512).expect("opened").1, written);

    // Even a segment that is nothing but an old one is only a segment not begun.
    let mut handle = disk.clone();
    let whole = handle.create(&RECORDS.file(number + 1), 512).expect("made");
    whole.write_at(0, &[&old]).expect("written");
    assert_eq!(open(&disk, 512).expect("opened").1, written);
}

#[test]
fn a_missing_segment_is_corruption() {
    for gone in [1, 2] {
        let mut disk = MemoryDisk::new();
        let (mut log, _) = open(&disk, 512).expect("opened");
        for n in 0..6 {
            log.append(1, &[n; 200], &Bytes::new()).expect("appended");
            log.commit().expect("committed");
        }
        disk.remove(&RECORDS.file(gone)).expect("removed");
        match open(&disk, 512).map(|(_, records)| records) {
            Err(StorageError::Corrupt { .. }) => {}
            other => panic!("segment {gone} is missing and recovery said {other:?}"),
        }
    }
}

#[test]
fn another_format_is_not_guessed_at() {
    let mut disk = MemoryDisk::new();
    let key = RECORDS.key(1);
    let payload = 7_u32.to_le_bytes();
    let header = RecordHeader {
        length: 4,
        sequence: 0,
        group: 0,
        kind: record::SEGMENT,
        payload: key.checksum(&[&payload]),
    };
    let file = disk.create(&RECORDS.file(1), 512).expect("made");
    file.write_at(0, &[&header.encode(&key), &payload]).expect("written");
    let error = open(&disk, 512).err().expect("refused");
    let file = "memory:log-000000000001".to_owned();
    assert_eq!(error, StorageError::Format { file, found: 7, expected: FORMAT });
}

#[test]
fn other_files_are_left_alone() {
    let mut disk = MemoryDisk::new();
    disk.create("notes", 5).expect("made");
    disk.create("log-7", 5).expect("made");
    open(&disk, 512).expect("opened");
    assert_eq!(disk.list().expect("listed"), ["log-000000000001", "log-7", "notes"]);
    assert_eq!(RECORDS.number(&RECORDS.file(7)), Some(7));
    assert_eq!(RECORDS.number("log-7"), None);
    assert_eq!(RECORDS.number("state"), None);
}

#[test]
fn durability_is_written_as_it_is_read() {
    for durability in [Durability::Fsync, Durability::Os] {
        assert_eq!(durability.to_string().parse(), Ok(durability));
        let json = serde_json::to_string(&durability).expect("encoded");
        assert_eq!(json, format!("\"{durability}\""));
    }
    let error = "always".parse::<Durability>().expect_err("unknown");
    assert_eq!(error.to_string(), "\"always\" is no durability: write \"fsync\" or \"os\"");
}
