use super::*;

fn signed_by(members: &[usize]) -> Bitmap {
    Bitmap::from_indices(4, members.iter().copied())
}

fn votes(counted: &Contributions) -> Vec<u32> {
    counted.members().iter().map(|member| member.votes).collect()
}

#[test]
fn votes_are_counted_in_the_last_certificates_alone() {
    let mut counted = Contributions::new(4);
    (0..30).for_each(|_| counted.certified(signed_by(&[0, 1, 2])));
    assert_eq!((counted.certificates(), votes(&counted)), (30, vec![30, 30, 30, 0]));
    (0..90).for_each(|_| counted.certified(signed_by(&[0, 1, 3])));
    assert_eq!((counted.certificates(), votes(&counted)), (100, vec![100, 100, 10, 90]));
}

#[test]
fn absences_are_counted_from_the_latest_certificate_back() {
    let mut counted = Contributions::new(4);
    assert_eq!(counted.absences(ReplicaId(3)), 0);
    counted.certified(signed_by(&[0, 1, 3]));
    (0..30).for_each(|_| counted.certified(signed_by(&[0, 1, 2])));
    assert_eq!([2, 3].map(|member| counted.absences(ReplicaId(member))), [0, 30]);
    (0..90).for_each(|_| counted.certified(signed_by(&[0, 1, 2])));
    assert_eq!(counted.absences(ReplicaId(3)), 100, "no more are kept");
}

#[test]
fn a_view_that_is_given_up_is_its_leaders_failure() {
    let mut counted = Contributions::new(4);
    counted.entered(View(1), ReplicaId(1), false);
    counted.entered(View(2), ReplicaId(2), false);
    counted.entered(View(3), ReplicaId(3), true);
    counted.suspected(View(3), GivenUpFor::Censorship);
    counted.entered(View(4), ReplicaId(0), true);
    let given_up: Vec<_> = counted.given_up().copied().collect();
    let (first, second) = (GivenUpFor::Timeout, GivenUpFor::Censorship);
    assert_eq!(given_up[0], GivenUp { view: View(2), leader: ReplicaId(2), reason: first });
    assert_eq!(given_up[1], GivenUp { view: View(3), leader: ReplicaId(3), reason: second });
    assert_eq!(counted.given_up_total(), 2);
    let turns = |member: usize| {
        let Contribution { turns, turns_failed, .. } = counted.members()[member];
        (turns, turns_failed)
    };
    assert_eq!([0, 1, 2, 3].map(turns), [(1, 0), (1, 0), (1, 1), (1, 1)]);
}

#[test]
fn the_last_views_that_were_given_up_are_kept() {
    let mut counted = Contributions::new(4);
    (0..40).for_each(|view| counted.entered(View(view), ReplicaId(0), true));
    assert_eq!((counted.given_up().count(), counted.given_up_total()), (16, 39));
    assert_eq!(counted.given_up().last().map(|last| last.view), Some(View(38)));
}
