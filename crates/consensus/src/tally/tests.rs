use super::{Ballots, Collector, Progress, Tally};
use crate::ProposalKey;
use crate::ProtocolKind;
use crate::Verifier;
use quorate_crypto::{IdentitySecret, KeyCache, KeyFile, Policy, SchemeKind, Share, VotingSecret};
use quorate_types::{
    AgreedSettings, Committee, CommitteeFile, Epoch, Member, Purpose, ReplicaId, Time,
};
use std::sync::Arc;
use std::time::Duration;

const WAIT: Duration = Duration::from_millis(1);

fn secret(i: u8) -> VotingSecret {
    VotingSecret::from_seed(SchemeKind::Stub, &[i; 32])
}

fn collector() -> Collector {
    let member = |i: u8| {
        let keys = KeyFile { identity: IdentitySecret::from_seed([i; 32]), voting: secret(i) };
        Member::new(&keys.public(), String::new())
    };
    let file = CommitteeFile {
        name: "tally".into(),
        network: None,
        epoch: Epoch(1),
        scheme: "stub".into(),
        redundancy: 0,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: (0..4).map(member).collect(),
    };
    let committee = Arc::new(Committee::load_simulated(&file, KeyCache::Off).expect("a good file"));
    let verifier = Verifier::new(committee, ProtocolKind::Jolteon, ProposalKey::Identity);
    Collector::new(Arc::clone(verifier.committee()), Purpose::Vote, Policy::Aggregate)
}

fn add(tally: &mut Tally<u8>, signer: u8, wording: u8, good: bool) -> bool {
    let share = if good { secret(signer).sign(&[wording]) } else { Share(vec![0; 16]) };
    tally.add(ReplicaId(u16::from(signer)), wording, || vec![wording], share)
}

/// Runs the jobs; what the last of them came to, and who was blamed.
fn run(
    tally: &mut Tally<u8>,
    now: Time,
    collector: &mut Collector,
) -> (usize, Progress<u8>, Vec<u16>) {
    let jobs = tally.combine(now, collector);
    let mut progress = Progress::Waiting;
    let mut blamed = Vec::new();
    for job in &jobs {
        progress = tally.combined(&job.run(), collector, &mut blamed);
    }
    (jobs.len(), progress, blamed.into_iter().map(|bad| bad.signer.0).collect())
}

fn signers(progress: &Progress<u8>) -> Vec<(u8, Vec<usize>)> {
    match progress {
        Progress::Waiting => Vec::new(),
        Progress::Done(groups) => {
            groups.iter().map(|(key, c)| (*key, c.signers.iter().collect())).collect()
        }
    }
}

#[test]
fn nothing_is_combined_below_the_threshold() {
    let (mut tally, mut collector) = (Tally::new(4, Duration::ZERO), collector());
    assert!(add(&mut tally, 0, 7, true) && add(&mut tally, 1, 7, true));
    assert_eq!(run(&mut tally, Time(0), &mut collector).0, 0);
    assert_eq!(tally.deadline(), None);
}

/// Each wording gets a certificate of its own; the threshold is over all of them.
#[test]
fn wordings_count_together_and_are_combined_apart() {
    let (mut tally, mut collector) = (Tally::new(4, Duration::ZERO), collector());
    for (signer, wording) in [(0, 7), (1, 8), (2, 7)] {
        assert!(add(&mut tally, signer, wording, true));
    }
    let (jobs, progress, blamed) = run(&mut tally, Time(0), &mut collector);
    assert_eq!((jobs, blamed), (2, vec![]));
    assert_eq!(signers(&progress), [(7, vec![0, 2]), (8, vec![1])]);
    assert!(!add(&mut tally, 3, 7, true), "finished");
}

#[test]
fn a_second_share_of_one_signer_is_dropped_whatever_it_says() {
    let mut tally = Tally::new(4, Duration::ZERO);
    assert!(add(&mut tally, 0, 7, false));
    assert!(!add(&mut tally, 0, 7, true));
    assert!(!add(&mut tally, 0, 8, true));
}

/// A bad share is blamed and dropped, leaves no deadline behind, and the next good one completes.
#[test]
fn a_bad_share_leaves_no_deadline_behind() {
    for wait in [Duration::ZERO, WAIT] {
        let (mut tally, mut collector) = (Tally::new(4, wait), collector());
        add(&mut tally, 0, 7, false);
        add(&mut tally, 1, 7, true);
        add(&mut tally, 2, 7, true);
        let mut now = Time(0);
        tally.combine(now, &mut collector).iter().for_each(|job| {
            let _ = tally.combined(&job.run(), &mut collector, &mut Vec::new());
        });
        if let Some(at) = tally.deadline() {
            now = at;
            let (_, progress, blamed) = run(&mut tally, now, &mut collector);
            assert_eq!((signers(&progress), blamed), (vec![], vec![0]));
        }
        assert_eq!(tally.deadline(), None, "wait {wait:?}: the host would spin");
        add(&mut tally, 3, 7, true);
        let later = now + WAIT + WAIT;
        let (_, first, _) = run(&mut tally, now, &mut collector);
        let (_, second, _) = run(&mut tally, later, &mut collector);
        let done = [signers(&first), signers(&second)].concat();
        assert_eq!(done, [(7, vec![1, 2, 3])], "wait {wait:?}");
    }
}

#[test]
fn a_wait_ends_with_everybody_or_its_time() {
    let (mut tally, mut collector) = (Tally::new(4, WAIT), collector());
    for signer in 0..3 {
        add(&mut tally, signer, 7, true);
    }
    assert_eq!(run(&mut tally, Time(5), &mut collector).0, 0);
    assert_eq!(tally.deadline(), Some(Time(1_005)));
    add(&mut tally, 3, 7, true);
    let (_, progress, _) = run(&mut tally, Time(6), &mut collector);
    assert_eq!(signers(&progress), [(7, vec![0, 1, 2, 3])]);
    assert_eq!(tally.deadline(), None);
}

/// Jobs are told apart by their numbers: what another tally's comes to says nothing of this one.
#[test]
fn a_job_is_of_one_tally() {
    let mut collector = collector();
    let [mut one, mut other] = [7, 8].map(|wording| {
        let mut tally = Tally::new(4, Duration::ZERO);
        (0..3).for_each(|signer| assert!(add(&mut tally, signer, wording, true)));
        tally
    });
    let [of_one, of_other] =
        [&mut one, &mut other].map(|tally| tally.combine(Time(0), &mut collector).remove(0));
    assert!(one.awaits(of_one.id) && !one.awaits(of_other.id));
    let mut invalid = Vec::new();
    let strange = one.combined(&of_other.run(), &mut collector, &mut invalid);
    assert_eq!(strange, Progress::Waiting);
    assert!(one.is_combining(), "its own job is under way");
    let own = one.combined(&of_one.run(), &mut collector, &mut invalid);
    assert_eq!(signers(&own), [(7, vec![0, 1, 2])]);
}

/// A wording is combined again only for shares that came since, and never without any.
#[test]
fn only_wordings_with_new_shares_are_combined_again() {
    for (last, done) in [(7, vec![(7, vec![0, 2, 3])]), (8, vec![(7, vec![0, 2]), (8, vec![3])])] {
        let (mut tally, mut collector) = (Tally::new(4, Duration::ZERO), collector());
        add(&mut tally, 0, 7, true);
        add(&mut tally, 1, 8, false);
        add(&mut tally, 2, 7, true);
        let (jobs, progress, blamed) = run(&mut tally, Time(0), &mut collector);
        assert_eq!((jobs, signers(&progress), blamed), (2, vec![], vec![1]));
        add(&mut tally, 3, last, true);
        let (jobs, progress, _) = run(&mut tally, Time(0), &mut collector);
        assert_eq!((jobs, signers(&progress)), (1, done), "the last share is for {last}");
    }
}

/// It is done when the jobs of all wordings are back, though one of them be enough.
#[test]
fn a_tally_waits_for_each_of_its_jobs() {
    let (mut tally, mut collector) = (Tally::new(4, WAIT), collector());
    for (signer, wording) in [(0, 7), (1, 7), (2, 7), (3, 8)] {
        add(&mut tally, signer, wording, true);
    }
    let jobs = tally.combine(Time(0), &mut collector);
    let mut invalid = Vec::new();
    let mut back = jobs.iter().map(|job| tally.combined(&job.run(), &mut collector, &mut invalid));
    assert_eq!(back.next(), Some(Progress::Waiting));
    let all = back.next().expect("two wordings");
    assert_eq!(signers(&all), [(7, vec![0, 1, 2]), (8, vec![3])]);
}

/// Of members that may state different things each is counted for one.
#[test]
fn ballots_count_each_member_once() {
    let mut ballots = Ballots::new(4, Duration::ZERO);
    assert_eq!(ballots.len(), 0);
    let add = |ballots: &mut Ballots<u8>, signer: u8, statement: u8| {
        let share = secret(signer).sign(&[statement]);
        ballots.add(ReplicaId(u16::from(signer)), statement, || vec![statement], share)
    };
    assert!(add(&mut ballots, 0, 7) && !add(&mut ballots, 0, 8) && add(&mut ballots, 1, 8));
    assert_eq!(ballots.len(), 2);
    let has = [0, 1, 2, 3].map(|signer| ballots.has(ReplicaId(signer)));
    assert_eq!(has, [true, true, false, false]);
    assert!(add(&mut ballots, 2, 8) && add(&mut ballots, 3, 8));
    let mut collector = collector();
    let jobs = ballots.combine(Time(0), &mut collector);
    assert!(ballots.is_combining() && ballots.awaits(jobs[0].id));
    let made = ballots.combined(&jobs[0].run(), &mut collector, &mut Vec::new());
    assert!(!ballots.is_combining());
    let (statement, certificate) = made.expect("three of four state it");
    assert_eq!((statement, certificate.signers.iter().collect()), (8, vec![1, 2, 3]));
    assert_eq!((jobs.len(), ballots.len()), (1, 2));
}
