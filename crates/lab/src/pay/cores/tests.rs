use super::*;
use std::thread;

/// Processors as a container may have them: neither from 0 nor without gaps.
const HERE: [usize; 8] = [2, 3, 5, 6, 8, 9, 10, 11];

fn divided(cores: usize, shards: u16) -> Cores {
    Cores::divide(&HERE, cores, shards).unwrap()
}

#[test]
fn shards_have_as_many_each_and_the_load_has_the_rest() {
    let one = divided(1, 1);
    assert_eq!(one, Cores { shards: vec![vec![11]], load: vec![2, 3, 5, 6, 8, 9, 10] });
    let four = divided(4, 1);
    assert_eq!(four, Cores { shards: vec![vec![8, 9, 10, 11]], load: vec![2, 3, 5, 6] });
    let shards = divided(6, 3);
    let of_shards = vec![vec![5, 6], vec![8, 9], vec![10, 11]];
    assert_eq!(shards, Cores { shards: of_shards, load: vec![2, 3] });
    assert_eq!([one, four, shards].map(|cores| cores.of_authority()), [1, 4, 6]);
}

#[test]
fn every_division_uses_each_processor_once() {
    for cores in 1..HERE.len() {
        for shards in (1..=8).filter(|shards| cores % usize::from(*shards) == 0) {
            let Cores { shards: of_shards, load } = divided(cores, shards);
            let mut all = of_shards.concat();
            all.extend(&load);
            all.sort_unstable();
            assert_eq!(all, HERE, "{cores} for {shards}");
            let each = cores / usize::from(shards);
            assert!(of_shards.iter().all(|cores| cores.len() == each) && !load.is_empty());
        }
    }
}

#[test]
fn what_leaves_none_for_the_load_is_refused() {
    let refused = |here: &[usize], cores, shards| Cores::divide(here, cores, shards).unwrap_err();
    assert_eq!(refused(&[0, 1], 2, 1), CoresError::TooFew { cores: 2, here: 2 });
    assert_eq!(refused(&[0], 1, 1), CoresError::TooFew { cores: 1, here: 1 });
    assert_eq!(
        refused(&[0, 1], 4, 2).to_string(),
        "4 processors for the authority and one for its load are more than the 2 that this process \
         may use"
    );
}

#[test]
fn what_does_not_divide_is_refused() {
    let refused = |cores, shards| Cores::divide(&HERE, cores, shards).unwrap_err();
    assert_eq!(refused(1, 2), CoresError::Uneven { cores: 1, shards: 2 });
    assert_eq!(
        refused(3, 2).to_string(),
        "3 processors do not divide among 2 shards: name a multiple of 2"
    );
}

#[test]
fn a_thread_that_is_pinned_and_those_that_it_starts_stay_there() {
    let last = allowed().unwrap().pop().unwrap();
    let seen = thread::spawn(move || {
        pin(&[last]).unwrap();
        (allowed().unwrap(), thread::spawn(|| allowed().unwrap()).join().unwrap())
    });
    assert_eq!(seen.join().unwrap(), (vec![last], vec![last]));
}

#[test]
fn no_thread_is_pinned_to_nothing() {
    assert!(thread::spawn(|| pin(&[])).join().unwrap().is_err());
    assert!(thread::spawn(|| pin(&[usize::MAX])).join().unwrap().is_err());
}
