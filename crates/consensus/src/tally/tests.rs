use super::{Collector, Progress, Tally};
use crate::ProposalKey;
use crate::ProtocolKind;
use crate::Verifier;
use quorate_crypto::{IdentitySecret, KeyCache, Policy, SchemeKind, Share, VotingSecret};
use quorate_types::{Committee, CommitteeFile, Epoch, Member, Purpose, ReplicaId, Time};
use std::sync::Arc;
use std::time::Duration;

const WAIT: Duration = Duration::from_millis(1);

fn secret(i: u8) -> VotingSecret {
    VotingSecret::from_seed(SchemeKind::Stub, &[i; 32])
}

fn collector() -> Collector {
    let member = |i: u8| Member {
        identity: IdentitySecret::from_seed([i; 32]).public().to_string(),
        voting: secret(i).public().to_string(),
        possession: String::new(),
        address: String::new(),
        weight: 1,
    };
    let file = CommitteeFile {
        name: "tally".into(),
        epoch: Epoch(1),
        scheme: "stub".into(),
        redundancy: 0,
        groups: None,
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
