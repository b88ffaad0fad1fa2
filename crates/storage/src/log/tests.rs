use super::record::{self, HEADER_BYTES, PayloadChecksum, RecordHeader};
use super::{BUFFER_BYTES_MAX, Durability, FORMAT, FORMAT_BEFORE, Log, LogConfig, RECORDS, scan};
use crate::disk::{Disk, DiskFile, FaultyDisk, MemoryDisk, RoomyDisk};
use crate::owner::OwnerRecord;
use crate::{Fault, Owner, Room, StorageError};
use bytes::Bytes;
use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;

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

/// A disk with the first segment of a log that another version wrote.
fn written_before(golden: &str) -> MemoryDisk {
    let mut disk = MemoryDisk::new();
    let file = disk.create(&RECORDS.file(1), 1_024).expect("made");
    let old: Vec<Vec<u8>> = golden.lines().map(unhex).collect();
    file.write_at(0, &[&old.concat()]).expect("written");
    file.sync_data().expect("synced");
    disk.sync_directory().expect("synced");
    disk
}

fn records_before() -> Records {
    vec![(1, b"head".to_vec()), (17, b"next".to_vec())]
}

/// The log that the last version wrote is read, left as it is until there is something to append,
/// and goes on in a new segment.
#[test]
fn a_log_of_the_format_before_goes_on_in_a_new_segment() {
    let disk = written_before(include_str!("golden_4.txt"));
    let old = read(&disk, &RECORDS.file(1));
    let (mut log, records) = open(&disk, 1_024).expect("opened");
    assert_eq!((records, log.segment().number), (records_before(), 1));
    assert_eq!(disk.list().expect("listed").len(), 1);
    write(&mut log, b"new");
    assert_eq!((log.segment().number, log.is_outdated), (2, false));
    write(&mut log, b"newer");
    assert_eq!(log.segment().number, 2);
    drop(log);
    disk.crash(&mut || true);
    let news = [(1, b"new".to_vec()), (1, b"newer".to_vec())];
    let all = [records_before(), news.to_vec()].concat();
    assert_eq!(open(&disk, 1_024).expect("opened").1, all);
    assert_eq!(read(&disk, &RECORDS.file(1)), old);
}

/// The power fails while the first records of the new format are written: none of them, or their
/// segment's own alone, is there.
#[test]
fn a_crash_on_the_way_to_this_format_loses_nothing() {
    for lost_from in [0, 512] {
        let disk = written_before(include_str!("golden_4.txt"));
        let (mut log, _) = open(&disk, 1_024).expect("opened");
        log.append(1, &[5; 500], &Bytes::new()).expect("appended");
        log.flush().expect("flushed");
        let mut handle = disk.clone();
        handle.sync_directory().expect("synced");
        let mut sector = 0;
        disk.crash(&mut || {
            sector += 512;
            sector > lost_from
        });
        drop(log);
        let (mut log, records) = open(&disk, 1_024).expect("opened");
        assert_eq!(records, records_before());
        write(&mut log, b"new");
        drop(log);
        let all = [records_before(), vec![(1, b"new".to_vec())]].concat();
        assert_eq!(open(&disk, 1_024).expect("opened").1, all, "lost from {lost_from}");
    }
}

/// The version before reads the first record of a segment of this one, and refuses it by its
/// format.
#[test]
fn the_version_before_can_read_which_format_it_is() {
    let disk = MemoryDisk::new();
    write(&mut open(&disk, 1_024).expect("opened").0, b"one");
    let bytes = read(&disk, &RECORDS.file(1));
    let header = RecordHeader::read(&bytes, &RECORDS.key(1)).expect("whole");
    let payload = header.payload(&bytes).expect("whole");
    assert_eq!(header.payload, PayloadChecksum::keyed(payload, &RECORDS.key(1)));
    let (found, _) = OwnerRecord::split(payload).expect("whole");
    let refused = found.check("log", FORMAT_BEFORE, &Owner::nobody()).expect_err("another format");
    let file = "log".to_owned();
    assert_eq!(refused, StorageError::Format { file, found: FORMAT, expected: FORMAT_BEFORE });
}

/// Segments of before owners were written down begin with the format alone.
#[test]
fn a_log_of_another_format_is_refused() {
    let disk = written_before(include_str!("golden_without_owner.txt"));
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
    for payload in [PayloadChecksum::keyed(b"payload", &key), PayloadChecksum::crc(b"pay", b"load")]
    {
        let header = RecordHeader { length: 7, sequence: 9, group: 8, kind: 17, payload };
        let mut bytes = header.encode(&key).to_vec();
        bytes.extend_from_slice(b"payload");
        assert_eq!(RecordHeader::read(&bytes, &key), Some(header));
        assert!(header.is_whole(&bytes, &key));
        assert!(!header.is_whole(&bytes[..HEADER_BYTES + 6], &key), "cut short");
        assert_eq!(RecordHeader::read(&bytes, &RECORDS.key(4)), None, "another segment's");
        assert_eq!(RecordHeader::read(&bytes[..HEADER_BYTES - 1], &key), None, "cut short");
    }
}

/// The value that RFC 3720 (B.4) and every other implementation has for these nine digits.
#[test]
fn a_payload_s_checksum_is_crc_32c() {
    assert_eq!(PayloadChecksum::crc(b"1234", b"56789"), PayloadChecksum::Crc(0xe306_9283));
}

/// Each of its bits is flipped, while a later record says that it had been committed.
#[test]
fn every_flipped_bit_of_a_committed_record_is_found() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 1_024).expect("opened");
    let payload = [7; 61];
    let location = log.append(1, &payload, &Bytes::new()).expect("appended");
    log.commit().expect("committed");
    write(&mut log, b"later");
    let file = RECORDS.file(1);
    for at in 0..(HEADER_BYTES + payload.len()) as u64 {
        for bit in 0..8 {
            let disk = disk.copy();
            disk.flip(&file, location.offset + at, bit);
            let read = super::Segment::open(&disk, RECORDS, 1).expect("opened").read(location);
            assert!(matches!(read, Err(StorageError::Corrupt { .. })), "byte {at}: {read:?}");
            let found = open(&disk, 1_024).map(|(_, records)| records);
            assert!(matches!(found, Err(StorageError::Corrupt { .. })), "byte {at}: {found:?}");
        }
    }
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
        payload: PayloadChecksum::keyed(&payload, &key),
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

/// A disk that notes what it is asked to make ready.
struct Preparing {
    inner: MemoryDisk,
    asked: Arc<Mutex<Vec<(String, u64)>>>,
}

impl Disk for Preparing {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&mut self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        self.inner.create(name, bytes)
    }

    fn prepare(&mut self, name: &str, bytes: u64) {
        self.asked.lock().push((name.to_owned(), bytes));
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.inner.open(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn locate(&self, name: &str) -> String {
        self.inner.locate(name)
    }
}

fn open_over(disk: Box<dyn Disk>, segment_bytes: u64) -> Log {
    let config = LogConfig { segment_bytes, ..LogConfig::default() };
    Log::open(disk, RECORDS, &Owner::nobody(), config, &mut |_| Ok(())).expect("opened")
}

/// A commit of one record with this payload.
fn write(log: &mut Log, payload: &[u8]) {
    log.append(1, payload, &Bytes::new()).expect("appended");
    log.commit().expect("committed");
}

fn spares(disk: &MemoryDisk) -> usize {
    disk.list().expect("listed").iter().filter(|name| name.contains("spare")).count()
}

/// The next file is asked for once, a quarter into a segment; not where one was set aside. Whatever
/// the disk does with it, so do those that stand over it.
#[test]
fn the_next_segment_is_made_ready_in_time() {
    let (memory, asked) = (MemoryDisk::new(), Arc::default());
    let preparing = Preparing { inner: memory.clone(), asked: Arc::clone(&asked) };
    let disk = RoomyDisk::new(FaultyDisk::new(preparing, Vec::new()), Room::unwatched());
    let mut log = open_over(Box::new(disk), 2_048);
    write(&mut log, &[1; 120]);
    assert_eq!(*asked.lock(), [], "{} of 2,048", log.end);
    write(&mut log, &[2; 120]);
    let next = |number| (RECORDS.file(number), 2_048);
    assert_eq!(*asked.lock(), [next(2)], "{} of 2,048", log.end);
    (0..3).for_each(|_| write(&mut log, &[3; 100]));
    assert_eq!(*asked.lock(), [next(2)], "once");
    while log.segment().number < 3 {
        write(&mut log, &[4; 100]);
    }
    assert_eq!(*asked.lock(), [next(2), next(3)]);
    // What was set aside before anything is made ready takes the place of the next.
    log.prune_before(3).expect("pruned");
    assert_eq!(spares(&memory), 2);
    while log.segment().number < 5 {
        write(&mut log, &[5; 100]);
    }
    assert_eq!((asked.lock().len(), spares(&memory)), (2, 0), "both were used");
}

/// Two files of the right size are set aside, and adopted by the next start; a record that is
/// larger than they are has a file of its own.
#[test]
fn as_many_files_as_are_of_use_are_set_aside() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 512).expect("opened");
    write(&mut log, &[0; 900]);
    while log.segment().number < 6 {
        write(&mut log, &[1; 200]);
    }
    let oversize = log.full().next().expect("full").0;
    log.prune_before(oversize + 1).expect("pruned");
    let after_oversize = spares(&disk);
    log.prune_before(log.segment().number).expect("pruned");
    assert_eq!(spares(&disk), 2);
    let number = log.segment().number;
    while log.segment().number == number {
        write(&mut log, &[2; 200]);
    }
    let left = spares(&disk);
    assert!(left > 0);
    write(&mut log, &[3; 900]);
    assert!(log.segment().capacity > 900, "{}", log.segment().capacity);
    assert_eq!(spares(&disk), left, "they are too small");
    assert!(after_oversize <= 1, "the first segment at most");
    drop(log);
    let mut handle = disk.clone();
    for number in [98, 99] {
        handle.create(&RECORDS.spare(number), 512).expect("made");
    }
    drop(open(&disk, 512).expect("opened"));
    assert_eq!(spares(&disk), 2, "the others are removed");
}

#[test]
fn a_log_says_which_of_its_files_could_not_be_synced() {
    let disk = MemoryDisk::new();
    drop(open(&disk, 512).expect("opened"));
    write(&mut open(&disk, 512).expect("opened").0, b"one");
    let faulty = FaultyDisk::new(disk, vec![Fault::FailDirectorySync { nth: 0 }]);
    let faulty: Box<dyn Disk> = Box::new(faulty);
    let config = LogConfig { segment_bytes: 512, ..LogConfig::default() };
    let opened = Log::open(faulty, RECORDS, &Owner::nobody(), config, &mut |_| Ok(()));
    let StorageError::Io { action, file, .. } = opened.err().expect("refused") else {
        panic!("another error")
    };
    assert_eq!((action, file.as_str()), ("sync the directory of", "memory:log-*"));
}

/// What is buffered goes to the file when it is much, however long the segment is already.
#[test]
fn only_much_is_flushed_before_the_commit() {
    let disk = FaultyDisk::new(MemoryDisk::new(), Vec::new());
    let faults = disk.faults();
    let mut log = open_over(Box::new(disk), 64 << 20);
    let large = Bytes::from(vec![7; BUFFER_BYTES_MAX]);
    log.append(1, &[], &large).expect("appended");
    assert_eq!(faults.writes(), 1, "at once");
    log.append(1, b"little", &Bytes::new()).expect("appended");
    assert_eq!(faults.writes(), 1, "with the commit");
    log.commit().expect("committed");
    assert_eq!(faults.writes(), 2);
    write(&mut log, b"more");
    assert_eq!(log.stats().bytes_written, log.end, "each byte of the segment once");
}

/// What lies below the oldest segment is what a crash left of pruning.
#[test]
fn files_below_the_oldest_segment_are_removed() {
    let mut disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 512).expect("opened");
    while log.segment().number < 4 {
        write(&mut log, &[1; 200]);
    }
    log.prune_before(4).expect("pruned");
    drop(log);
    disk.create(&RECORDS.file(2), 512).expect("made");
    let (_, records) = open(&disk, 512).expect("opened");
    assert!(!disk.list().expect("listed").contains(&RECORDS.file(2)));
    assert!(!records.is_empty());
}

/// The newest segment's start was torn: the one before it says which is the oldest.
#[test]
fn the_oldest_segment_is_known_after_a_torn_start() {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(&disk, 512).expect("opened");
    while log.segment().number < 4 {
        write(&mut log, &[1; 200]);
    }
    log.prune_before(3).expect("pruned");
    while log.segment().number < 5 {
        write(&mut log, &[2; 200]);
    }
    let last = RECORDS.file(log.segment().number);
    drop(log);
    let whole = open(&disk.copy(), 512).expect("opened").1;
    disk.open(&last).expect("there").write_at(168, &[&[0; 344]]).expect("written");
    let (_, records) = open(&disk, 512).expect("opened");
    assert_eq!(records, whole[..whole.len() - 1], "all but what was torn");
}

/// Damage is named where it is, at the end of one segment or at the start of the next.
#[test]
fn damage_between_two_segments_is_named_where_it_is() {
    let damage = |number: u64, at: u64| {
        let disk = MemoryDisk::new();
        let (mut log, _) = open(&disk, 512).expect("opened");
        while log.segment().number < 4 {
            write(&mut log, &[1; 100]);
        }
        drop(log);
        disk.flip(&RECORDS.file(number), at, 1);
        match open(&disk, 512).err() {
            Some(StorageError::Corrupt { file, offset, .. }) => (file, offset),
            other => panic!("{other:?}"),
        }
    };
    // The segment's own record has 168 bytes, the first of two others 168 too.
    assert_eq!(damage(2, 336 + 70), ("memory:log-000000000002".to_owned(), 336));
    for at in [10, 70] {
        assert_eq!(damage(3, at), ("memory:log-000000000003".to_owned(), 0), "byte {at}");
    }
}

#[test]
fn a_log_has_begun_with_a_whole_first_record() {
    let folder = tempfile::tempdir().expect("made");
    let begun = |path: &Path| scan::has_begun(path, RECORDS);
    let missing = folder.path().join("missing");
    assert!(!begun(&missing).expect("no folder"));
    assert!(!begun(folder.path()).expect("no file"));
    let file = folder.path().join(RECORDS.file(1));
    std::fs::write(folder.path().join("notes"), b"text").expect("written");
    for content in [&[0; 512][..], b"", &[7; 512]] {
        std::fs::write(&file, content).expect("written");
        assert!(!begun(folder.path()).expect("nothing whole"));
    }
    begun(&file).expect_err("no folder");

    let disk = MemoryDisk::new();
    write(&mut open(&disk, 512).expect("opened").0, b"one");
    let mut whole = read(&disk, &RECORDS.file(1));
    std::fs::write(&file, &whole).expect("written");
    assert!(begun(folder.path()).expect("it has"));
    // The header is whole, and what it is of is not.
    whole[HEADER_BYTES + 20] ^= 1;
    std::fs::write(&file, &whole).expect("written");
    assert!(!begun(folder.path()).expect("torn"));
}
