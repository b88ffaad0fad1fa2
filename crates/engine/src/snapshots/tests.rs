//! Conditions of installing a snapshot; liars and silence only cost time.

use super::{
    ASK_AGAIN, CHUNK_RETRY, Offered, PER_MEMBER_MAX, SILENCE_MAX, SnapshotFetch, SnapshotSync,
    Taken,
};
use crate::EpochStart;
use crate::testing::{committee, signed_change, signed_hand_over, weighted};
use bytes::Bytes;
use quorate_crypto::{Digest, hash};
use quorate_types::{HandOver, HandedOver, Header, Height, Manifest, ReplicaId, Time};

type Check = Result<(), String>;

fn ensure(holds: bool, what: &str) -> Check {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

fn content(index: u32) -> Bytes {
    Bytes::from(vec![u8::try_from(index).expect("few"); 10])
}

/// A snapshot of `chunks` chunks; `operations` makes it another one.
fn offered(height: u64, operations: u64, chunks: u32) -> Offered {
    let manifest = Manifest {
        service: "noop".into(),
        header: Header { height: Height(height), state: hash(b"state"), ..Header::default() },
        operations,
        chunks: (0..chunks).map(|index| hash(&content(index))).collect(),
    };
    let digest = manifest.digest();
    Offered { manifest, digest, decided: Bytes::from_static(b"decided") }
}

/// One of four members, with nothing executed, that has asked everybody.
fn asking() -> SnapshotSync {
    let mut sync = SnapshotSync::new(committee(), EpochStart::default());
    sync.start(Time(0));
    assert_eq!(sync.due(Time(0), Height(0)), [SnapshotFetch::Name(Height(0))]);
    sync
}

fn name(sync: &mut SnapshotSync, member: u16, offered: &Offered) {
    sync.offered(ReplicaId(member), offered.clone(), Height(0));
}

fn asked(fetches: &[SnapshotFetch]) -> Vec<(u16, u32)> {
    let chunk = |fetch: &SnapshotFetch| match fetch {
        SnapshotFetch::Chunk(member, _, index) => (member.0, *index),
        SnapshotFetch::Name(_) => panic!("asked everybody again"),
    };
    fetches.iter().map(chunk).collect()
}

/// The chunk as it should be.
fn good(index: u32) -> Option<(Digest, Bytes)> {
    Some((hash(&content(index)), content(index)))
}

/// ★ Fewer than the weak weight vouch for nothing, however often they say it.
fn nothing_is_installed_that_too_few_vouch_for() -> Check {
    let mut sync = asking();
    let lie = offered(64, 1, 0);
    name(&mut sync, 1, &lie);
    name(&mut sync, 1, &lie);
    name(&mut sync, 2, &offered(64, 2, 0));
    name(&mut sync, 3, &offered(32, 1, 0));
    ensure(sync.install().is_none(), "installed what one of four members made up")?;
    name(&mut sync, 2, &offered(32, 1, 0));
    let installed = sync.install().map(|install| install.manifest.header.height);
    ensure(installed == Some(Height(32)), "two of four name it alike")
}

/// ★ A chunk that is not what the manifest says is not kept, and its sender is not asked again.
fn no_wrong_chunk_is_kept() -> Check {
    let mut sync = asking();
    let snapshot = offered(64, 1, 2);
    (1..=3).for_each(|member| name(&mut sync, member, &snapshot));
    let first = asked(&sync.due(Time(0), Height(0)));
    let (liar, index) = first[0];
    let wrong = Bytes::from_static(b"made up");
    let taken = sync.chunk(ReplicaId(liar), (snapshot.digest, index), Some((hash(&wrong), wrong)));
    ensure(taken == Taken::Wrong, "a made-up chunk was kept")?;
    let again = asked(&sync.due(Time(0), Height(0)));
    ensure(again.iter().any(|(_, of)| *of == index), "it is asked of somebody else at once")?;
    ensure(again.iter().all(|(member, _)| *member != liar), "not of the liar")
}

#[test]
fn too_few_vouch_for_nothing() {
    nothing_is_installed_that_too_few_vouch_for().unwrap();
}

/// Epoch 1 ended with member 1 weighing as much as all others together; in this one all are alike.
/// Its word is enough for the state that was handed over, and for no other.
#[test]
fn who_had_a_voice_vouches_for_the_state_that_an_epoch_began_with() {
    let border = offered(64, 1, 0);
    let header = border.manifest.header;
    let content = HandOver { height: header.height, root: header.root(), ..HandOver::default() };
    let file = signed_change(1, 9).change.file;
    let step = HandedOver { signed: signed_hand_over(content), header, file };
    let start = EpochStart::after(committee().network(), &[step]);
    let begun = |start: EpochStart| {
        let mut sync = SnapshotSync::new(committee(), start);
        sync.start(Time(0));
        sync.due(Time(0), Height(0));
        sync
    };
    let mut sync = begun(start.clone().of(&weighted(&[1, 3, 1, 1])));
    name(&mut sync, 0, &border);
    name(&mut sync, 1, &offered(65, 1, 0));
    assert!(sync.install().is_none(), "one of another height, and a light one's word");
    name(&mut sync, 1, &border);
    assert_eq!(sync.install().map(|it| it.manifest.header), Some(header));
    let mut unknown = begun(start);
    name(&mut unknown, 1, &border);
    assert!(unknown.install().is_none(), "nobody is known to have had a voice");
}

#[test]
fn wrong_chunks_are_not_kept() {
    no_wrong_chunk_is_kept().unwrap();
}

#[test]
fn the_highest_one_that_enough_name_is_taken_and_others_join_in() {
    let mut sync = asking();
    let (old, new) = (offered(32, 1, 9), offered(64, 1, 9));
    for member in [1, 2] {
        sync.offered(ReplicaId(member), new.clone(), Height(0));
    }
    assert_eq!(sync.target(), Some(Height(64)));
    name(&mut sync, 3, &old);
    name(&mut sync, 3, &new);
    let members: std::collections::BTreeSet<u16> =
        asked(&sync.due(Time(0), Height(0))).into_iter().map(|(member, _)| member).collect();
    assert_eq!(members, [1, 2, 3].into());
}

#[test]
fn what_is_executed_already_is_of_no_use() {
    let mut sync = asking();
    let snapshot = offered(64, 1, 0);
    (1..=3).for_each(|member| sync.offered(ReplicaId(member), snapshot.clone(), Height(64)));
    assert_eq!(sync.install(), None);
    let mut sync = asking();
    let snapshot = offered(64, 1, 3);
    (1..=3).for_each(|member| name(&mut sync, member, &snapshot));
    assert_eq!(sync.due(Time(0), Height(70)), [], "blocks were quicker");
    assert!(!sync.is_active());
}

#[test]
fn chunks_come_from_all_sources_at_once_a_few_from_each() {
    let mut sync = asking();
    let snapshot = offered(64, 1, 20);
    (1..=3).for_each(|member| name(&mut sync, member, &snapshot));
    let mut under_way = asked(&sync.due(Time(0), Height(0)));
    for member in 1..=3 {
        let load = under_way.iter().filter(|(of, _)| *of == member).count();
        assert_eq!(load, PER_MEMBER_MAX);
    }
    let mut staged = Vec::new();
    while let Some((member, index)) = under_way.pop() {
        match sync.chunk(ReplicaId(member), (snapshot.digest, index), good(index)) {
            Taken::Stage(chunk) => staged.push((chunk.hash, chunk.bytes)),
            other => panic!("{other:?}"),
        }
        under_way.extend(asked(&sync.due(Time(0), Height(0))));
    }
    staged.sort();
    let mut expected: Vec<_> = (0..20).filter_map(good).collect();
    expected.sort();
    assert_eq!(staged, expected, "each once");
    assert!(sync.holds_execution());
    let install = sync.install().expect("complete");
    assert_eq!(install.manifest, snapshot.manifest);
    assert_eq!((sync.install(), sync.target()), (None, Some(Height(64))), "once");
    sync.installed();
    assert!(!sync.is_active());
}

#[test]
fn a_silent_source_costs_a_retry_and_no_more() {
    let mut sync = asking();
    let snapshot = offered(64, 1, 2);
    [1, 2].iter().for_each(|member| name(&mut sync, *member, &snapshot));
    let first = asked(&sync.due(Time(0), Height(0)));
    assert_eq!(first, [(1, 0), (2, 1)]);
    assert!(matches!(sync.chunk(ReplicaId(2), (snapshot.digest, 1), good(1)), Taken::Stage(_)));
    let at = sync.deadline().expect("it waits for the other");
    assert_eq!(at, Time(0) + CHUNK_RETRY);
    assert_eq!(asked(&sync.due(at, Height(0))), [(2, 0)], "of whoever answers");
}

/// On a slow link every chunk is late: it counts all the same, and the next ones are given more
/// time.
#[test]
fn a_late_chunk_counts_and_lengthens_the_timeout() {
    let mut sync = asking();
    let snapshot = offered(64, 1, 6);
    [1, 2].iter().for_each(|member| name(&mut sync, *member, &snapshot));
    let first = asked(&sync.due(Time(0), Height(0)));
    assert_eq!(first, [(1, 0), (2, 1), (1, 2), (2, 3)]);
    let at = sync.deadline().expect("it waits");
    let again = asked(&sync.due(at, Height(0)));
    assert_eq!(again.len(), 4, "{again:?}");
    let wrong = sync.chunk(ReplicaId(1), (snapshot.digest, 0), good(1));
    assert_eq!(wrong, Taken::Wrong, "a liar is a liar, late or not");
    assert!(matches!(sync.chunk(ReplicaId(2), (snapshot.digest, 1), good(1)), Taken::Stage(_)));
    assert_eq!(sync.chunk(ReplicaId(2), (snapshot.digest, 1), good(1)), Taken::Unasked, "once");
    sync.due(at, Height(0));
    let deadlines = || sync.deadline();
    assert_eq!(deadlines(), Some(at + CHUNK_RETRY), "what was asked before");
    let later = at + CHUNK_RETRY;
    sync.due(later, Height(0));
    assert_eq!(sync.deadline(), Some(at + 2 * CHUNK_RETRY), "twice the timeout");
}

/// Sources that all went silent, or all gave the snapshot up, are left for a new round.
#[test]
fn without_a_source_everybody_is_asked_again() {
    let snapshot = offered(64, 1, 2);
    let fetching = || {
        let mut sync = asking();
        [1, 2].iter().for_each(|member| name(&mut sync, *member, &snapshot));
        sync
    };
    let mut silent = fetching();
    let mut now = Time(0);
    let asked_all = (0..100).any(|_| {
        let fetches = silent.due(now, Height(0));
        now = silent.deadline().expect("it goes on");
        fetches == [SnapshotFetch::Name(Height(0))]
    });
    assert!(asked_all, "it waits for the silent for ever");

    let mut gone = fetching();
    for (member, index) in asked(&gone.due(Time(0), Height(0))) {
        let taken = gone.chunk(ReplicaId(member), (snapshot.digest, index), None);
        assert_eq!(taken, Taken::Gone);
    }
    assert_eq!(gone.due(Time(1), Height(0)), [SnapshotFetch::Name(Height(0))]);
}

/// A member may name its two snapshots; a third pushes the first out, and one of the same height
/// takes the other's place.
#[test]
fn the_last_two_snapshots_of_a_member_count() {
    let (old, new) = (offered(32, 1, 3), offered(64, 1, 3));
    for shared in [&old, &new] {
        let mut sync = asking();
        name(&mut sync, 1, &new);
        name(&mut sync, 1, &old);
        name(&mut sync, 2, shared);
        assert_eq!(sync.target(), Some(shared.manifest.header.height), "both count");
    }
    let mut sync = asking();
    [&old, &new, &offered(96, 1, 3)].iter().for_each(|snapshot| name(&mut sync, 1, snapshot));
    name(&mut sync, 2, &old);
    assert_eq!(sync.target(), None, "the first of three does not");
    name(&mut sync, 3, &new);
    assert_eq!(sync.target(), Some(Height(64)));
    let mut sync = asking();
    name(&mut sync, 1, &new);
    name(&mut sync, 1, &offered(64, 2, 3));
    name(&mut sync, 2, &new);
    assert_eq!(sync.target(), None, "it says something else of that height now");
    name(&mut sync, 3, &offered(64, 2, 3));
    assert_eq!(sync.target(), Some(Height(64)));
}

/// Everybody is asked again when the time for answers is over, and not before.
#[test]
fn everybody_is_asked_once_in_a_while() {
    let mut sync = asking();
    let next = Time(0) + ASK_AGAIN;
    assert_eq!(sync.deadline(), Some(next));
    assert_eq!(sync.due(Time(next.0 - 1), Height(3)), []);
    assert_eq!(sync.due(next, Height(3)), [SnapshotFetch::Name(Height(3))]);
    assert_eq!(sync.due(next, Height(3)), []);
    assert_eq!(sync.deadline(), Some(next + ASK_AGAIN));
}

/// Whoever was given up for a chunk may still send it, and can do no harm by sending something
/// else: it stays a source, and what is asked of others meanwhile is not disturbed.
#[test]
fn a_late_answer_that_is_no_chunk_changes_nothing() {
    let wrong = Bytes::from_static(b"made up");
    for content in [None, Some((hash(&wrong), wrong))] {
        let mut sync = asking();
        let snapshot = offered(64, 1, 1);
        [1, 2].iter().for_each(|member| name(&mut sync, *member, &snapshot));
        assert_eq!(asked(&sync.due(Time(0), Height(0))), [(1, 0)]);
        let at = sync.deadline().expect("it may be silent");
        assert_eq!(asked(&sync.due(at, Height(0))), [(2, 0)]);
        let late = sync.chunk(ReplicaId(1), (snapshot.digest, 0), content);
        assert_eq!(late, Taken::Unasked);
        assert!(sync.describe().contains("from 2 members"), "{}", sync.describe());
        assert_eq!(sync.due(at, Height(0)), [], "the other is still asked");
        let taken = sync.chunk(ReplicaId(2), (snapshot.digest, 0), good(0));
        assert!(matches!(taken, Taken::Stage(_)), "{taken:?}");
    }
}

/// Chunks under way: whose they are, and until when.
fn under_way(sync: &SnapshotSync) -> Vec<(u32, ReplicaId, Time)> {
    let super::Phase::Fetching(fetching) = &sync.phase else { panic!("{}", sync.describe()) };
    fetching.asked.iter().map(|(index, (member, until))| (*index, *member, *until)).collect()
}

/// A chunk in time leaves the wait as it is; one that comes after all doubles it, up to a bound.
#[test]
fn the_wait_for_chunks_grows_with_what_comes_late() {
    let mut sync = asking();
    let snapshot = offered(64, 1, 100);
    let (slow, quick) = (ReplicaId(1), ReplicaId(2));
    [slow, quick].iter().for_each(|member| name(&mut sync, member.0, &snapshot));
    let (mut now, mut expected) = (Time(0), CHUNK_RETRY);
    let give = |sync: &mut SnapshotSync, member, index| {
        let taken = sync.chunk(member, (snapshot.digest, index), good(index));
        assert!(matches!(taken, Taken::Stage(_)), "{taken:?}");
    };
    for _ in 0..6 {
        for (_, index) in asked(&sync.due(now, Height(0))) {
            let (.., until) = *under_way(&sync).iter().find(|(i, ..)| *i == index).expect("asked");
            assert_eq!(until, now + expected);
        }
        let (quickly, slowly): (Vec<_>, Vec<_>) =
            under_way(&sync).into_iter().partition(|(_, member, _)| *member == quick);
        quickly.iter().for_each(|(index, ..)| give(&mut sync, quick, *index));
        now = slowly.iter().map(|(.., until)| *until).max().expect("some");
        let again = asked(&sync.due(now, Height(0)));
        let (late, ..) = slowly[0];
        assert!(again.contains(&(quick.0, late)), "{again:?}");
        give(&mut sync, slow, late);
        expected = (2 * expected).min(super::CHUNK_TIMEOUT_MAX);
    }
    assert_eq!(expected, super::CHUNK_TIMEOUT_MAX);
}

/// Only whoever names this very snapshot is asked for its chunks, and nobody who sent a wrong one
/// is by naming it again.
#[test]
fn sources_are_those_that_name_this_snapshot_and_keep_to_it() {
    let mut sync = asking();
    let snapshot = offered(64, 1, 20);
    [1, 2].iter().for_each(|member| name(&mut sync, *member, &snapshot));
    name(&mut sync, 3, &offered(64, 2, 20));
    assert!(sync.describe().contains("from 2 members"), "{}", sync.describe());
    let (liar, index) = asked(&sync.due(Time(0), Height(0)))[0];
    let wrong = Bytes::from_static(b"made up");
    sync.chunk(ReplicaId(liar), (snapshot.digest, index), Some((hash(&wrong), wrong)));
    name(&mut sync, liar, &snapshot);
    assert!(sync.describe().contains("from 1 members"), "{}", sync.describe());
    name(&mut sync, 3, &snapshot);
    assert!(sync.describe().contains("from 2 members"), "{}", sync.describe());
}

/// Sources may each leave so many chunks in a row unanswered; one more, and everybody is asked.
#[test]
fn silent_sources_are_left_after_so_many_chunks() {
    let mut sync = asking();
    let snapshot = offered(64, 1, 20);
    let sources = [1, 2];
    sources.iter().for_each(|member| name(&mut sync, *member, &snapshot));
    let mut now = Time(0);
    let mut unanswered = 0;
    loop {
        let fetches = sync.due(now, Height(0));
        let given_up = SILENCE_MAX * sources.len() * PER_MEMBER_MAX;
        if unanswered > given_up {
            assert_eq!(fetches, [SnapshotFetch::Name(Height(0))]);
            break;
        }
        assert_eq!(asked(&fetches).len(), sources.len() * PER_MEMBER_MAX, "after {unanswered}");
        unanswered += fetches.len();
        now = sync.deadline().expect("it waits for them");
    }
}

#[test]
fn what_nobody_asked_for_is_dropped() {
    let mut sync = asking();
    let snapshot = offered(64, 1, 3);
    assert_eq!(sync.chunk(ReplicaId(1), (snapshot.digest, 0), good(0)), Taken::Unasked);
    (1..=3).for_each(|member| name(&mut sync, member, &snapshot));
    let (member, index) = asked(&sync.due(Time(0), Height(0)))[0];
    let other = ReplicaId(member % 3 + 1);
    assert_eq!(sync.chunk(other, (snapshot.digest, index), good(index)), Taken::Unasked);
    let of_another = (hash(b"another"), index);
    assert_eq!(sync.chunk(ReplicaId(member), of_another, good(index)), Taken::Unasked);
    assert_eq!(sync.chunk(ReplicaId(member), (snapshot.digest, 77), good(0)), Taken::Unasked);
}

/// Chunks that an earlier run staged are not fetched again, and those that the chosen snapshot does
/// not have are released.
#[test]
fn a_fetch_that_was_cut_short_goes_on() {
    let mut sync = SnapshotSync::new(committee(), EpochStart::default());
    let here = [0, 2, 3].map(|index| hash(&content(index)));
    let useless = hash(b"of an older snapshot");
    sync.recover([&here[..], &[useless]].concat());
    sync.start(Time(0));
    sync.due(Time(0), Height(0));
    let snapshot = offered(64, 1, 5);
    (1..=3).for_each(|member| name(&mut sync, member, &snapshot));
    assert_eq!(sync.take_surplus(), [useless]);
    assert_eq!(sync.take_surplus(), []);
    assert!(sync.describe().contains("3 of 5"), "{}", sync.describe());
    let mut missing = asked(&sync.due(Time(0), Height(0)));
    missing.sort_by_key(|(_, index)| *index);
    assert_eq!(missing.iter().map(|(_, index)| *index).collect::<Vec<_>>(), [1, 4]);
    for (member, index) in missing {
        let taken = sync.chunk(ReplicaId(member), (snapshot.digest, index), good(index));
        assert!(matches!(taken, Taken::Stage(_)), "{taken:?}");
    }
    assert!(sync.install().is_some());
    sync.installed();
    sync.executed();
    assert_eq!(sync.take_surplus(), [], "the host let them go when it installed them");
}

/// Whoever executes by itself again needs nothing of what it staged.
#[test]
fn what_is_staged_goes_once_heights_are_executed() {
    let mut sync = asking();
    sync.recover(vec![hash(b"one")]);
    sync.executed();
    assert_eq!(sync.take_surplus(), [], "it is still asking");
    sync.stop();
    sync.executed();
    assert_eq!(sync.take_surplus(), [hash(b"one")]);
}

/// Each rule left out is noticed by the check that stands for it.
mod mutants {
    use super::*;
    use quorate_crypto::mutants::{Mutant, set};

    #[test]
    fn every_rule_is_guarded() {
        let checks: [(Mutant, fn() -> Check); 2] = [
            (Mutant::InstallUnvouched, nothing_is_installed_that_too_few_vouch_for),
            (Mutant::AcceptWrongChunk, no_wrong_chunk_is_kept),
        ];
        for (mutant, check) in checks {
            check().unwrap();
            set(Some(mutant));
            let result = check();
            set(None);
            assert!(result.is_err(), "{mutant:?} went unnoticed");
        }
    }
}
