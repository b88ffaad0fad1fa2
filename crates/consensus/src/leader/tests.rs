use super::{LeaderElection, RoundRobin};
use quorate_types::{ReplicaId, View, Weights};

fn leaders(each: &[u64]) -> RoundRobin {
    RoundRobin::new(&Weights::new(each.to_vec()).expect("sound weights"))
}

fn named(leaders: &RoundRobin, views: u64) -> Vec<u16> {
    (1..=views).map(|view| leaders.leader(View(view)).0).collect()
}

#[test]
fn equals_lead_one_after_the_other_from_view_1() {
    for weight in [1, 5] {
        let leaders = leaders(&[weight; 3]);
        assert_eq!(named(&leaders, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert!(leaders.leader(View(u64::MAX)).0 < 3);
    }
    assert_eq!(leaders(&[4]).leader(View(9)), ReplicaId(0));
    for members in 1..40 {
        let order = named(&leaders(&vec![1; members]), members as u64);
        assert!(order.into_iter().map(usize::from).eq(0..members), "{members}");
    }
}

#[test]
fn turns_are_in_proportion_to_weights_and_interleaved() {
    assert_eq!(named(&leaders(&[3, 1, 1, 1]), 7), [0, 1, 0, 2, 0, 3, 0]);
    assert_eq!(named(&leaders(&[30, 10, 10, 10]), 7), [0, 1, 0, 2, 0, 3, 0]);
    assert_eq!(leaders(&[30, 10, 10, 10]).round(), 6, "no longer than it has to be");
    assert_eq!(named(&leaders(&[1, 2, 1]), 5), [1, 0, 1, 2, 1]);
    assert_eq!(named(&leaders(&[2, 2, 1]), 6), [0, 1, 2, 0, 1, 0]);
}

#[test]
fn a_turn_is_as_long_as_its_tenure() {
    let leaders = leaders(&[1; 3]).with_tenure(2);
    assert_eq!(named(&leaders, 8), [0, 0, 1, 1, 2, 2, 0, 0]);
    assert_eq!((leaders.tenure(), leaders.round()), (2, 6));
    assert_eq!(named(&leaders.with_tenure(0), 4), [0, 1, 2, 0], "never less than a view");
}

/// Vectors of every shape: few and many, alike and far apart.
fn many() -> Vec<Vec<u64>> {
    let mut all = vec![
        vec![1, 20_000, 20_000, 20_000],
        vec![64; 1_024],
        (1..=100).collect(),
        [vec![200; 5], vec![1; 90]].concat(),
    ];
    let mut state = 7_u64;
    let mut draw = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..300 {
        let members = 1 + draw(12);
        let most = 1 + draw(40);
        all.push((0..members).map(|_| 1 + draw(most)).collect());
    }
    all.retain(|each| Weights::new(each.clone()).is_ok());
    assert!(all.len() > 200, "{}", all.len());
    all
}

/// Tijdeman's bound: after any number of views each member has led within one view of its share,
/// and after a round exactly its share.
#[test]
fn nobody_is_ever_a_turn_ahead_or_behind() {
    for each in many() {
        let leaders = leaders(&each);
        let total: u64 = each.iter().sum();
        let mut led = vec![0_u64; each.len()];
        for view in 1..=total {
            led[leaders.leader(View(view)).index()] += 1;
            for (led, weight) in led.iter().zip(&each) {
                let (have, due) = (led * total, view * weight);
                assert!(have.abs_diff(due) < total, "{each:?}: {led} turns by view {view}");
            }
        }
        assert_eq!(led, each);
    }
}

/// Whoever is faulty, as long as they weigh no more than is tolerated: some three views in a row
/// are led by honest members, so the chain decides. Turns by heads would not do.
#[test]
fn three_honest_leaders_follow_each_other_in_every_round() {
    for each in many().into_iter().filter(|each| each.len() <= 10) {
        let weights = Weights::new(each.clone()).expect("sound");
        let order = named(&leaders(&each), weights.total() + 2);
        for faulty in 0..1_usize << each.len() {
            let is_faulty = |member: usize| faulty >> member & 1 == 1;
            let weight: u64 = (0..each.len()).filter(|m| is_faulty(*m)).map(|m| each[m]).sum();
            if weight <= weights.faulty_max() {
                let honest = |leader: &u16| !is_faulty(usize::from(*leader));
                let decides = order.windows(3).any(|three| three.iter().all(honest));
                assert!(decides, "{each:?} with {faulty:b} faulty");
            }
        }
    }
    // A third of the weight in most of the heads, so seated that equal turns never decide.
    let each = [10, 1, 1, 10, 1, 1, 10, 1, 1, 10, 1, 1];
    let by_heads = (0..24).map(|turn| each[turn % each.len()]).collect::<Vec<u64>>();
    assert!(!by_heads.windows(2).any(|two| two.iter().all(|weight| *weight == 10)));
    let order = named(&leaders(&each), 50);
    let heavy = |leader: &u16| each[usize::from(*leader)] == 10;
    assert!(order.windows(3).any(|three| three.iter().all(heavy)));
}
