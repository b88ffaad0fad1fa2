use super::*;
use quorate_crypto::hash;

fn name(number: u32) -> Digest {
    hash(&number.to_le_bytes())
}

#[test]
fn what_was_put_is_found_under_its_own_name_alone() {
    let mut recent = Recent::new(1 << 10);
    assert_eq!(recent.get(&name(0)), None);
    for number in 0..200 {
        recent.put(name(number), number);
    }
    let found = (0..200).filter(|number| recent.get(&name(*number)) == Some(number)).count();
    assert!(found > 100, "{found} of 200");
    assert!((200..2_000).all(|number| recent.get(&name(number)).is_none()));
}

#[test]
fn the_newer_of_two_in_one_slot_stays_and_neither_passes_for_the_other() {
    let mut recent = Recent::new(1 << 4);
    let (mut first, mut second) = (Digest([7; 32]), Digest([7; 32]));
    (first.0[31], second.0[31]) = (1, 2);
    recent.put(first, "first");
    assert_eq!(recent.get(&second), None);
    recent.put(second, "second");
    assert_eq!((recent.get(&first), recent.get(&second)), (None, Some(&"second")));
}

#[test]
fn it_never_has_more_slots_than_it_may() {
    let mut recent = Recent::new(1 << 8);
    for number in 0..5_000 {
        recent.put(name(number), ());
        assert_eq!(recent.get(&name(number)), Some(&()));
    }
    assert_eq!((recent.slots.len(), recent.slots.capacity()), (1 << 8, 1 << 8));
}
