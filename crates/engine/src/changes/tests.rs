use super::{Changes, KEPT_MAX, NotTaken, Stop};
use crate::testing::signed_change;
use quorate_crypto::hash;
use quorate_types::{BlockId, BodyRef, Change, ChangeError, Height};

fn change(not_before: u64, expires: u64) -> Change {
    signed_change(not_before, expires).change
}

/// A book with these changes, all stored.
fn book(changes: &[Change]) -> Changes {
    let mut book = Changes::default();
    for change in changes {
        assert_eq!(book.take(change.clone(), Height(1), false), Ok(true));
        book.stored(&change.digest());
    }
    book
}

fn end(change: &Change) -> Stop {
    Stop { change: change.digest(), height: Height(2), block: BlockId(hash(b"stop")) }
}

#[test]
fn the_first_that_a_height_may_order_is_proposed() {
    let [late, first, second] = [change(5, 9), change(2, 6), change(2, 9)];
    let book = book(&[late.clone(), first.clone(), second.clone()]);
    let due = |height| book.due(Height(height));
    assert_eq!((due(1), due(2)), (None, Some(first.digest())));
    assert_eq!((due(5), due(7), due(10)), (Some(late.digest()), Some(late.digest()), None));
}

#[test]
fn what_is_not_durable_is_not_proposed() {
    let change = change(1, 9);
    let mut book = Changes::default();
    assert_eq!(book.take(change.clone(), Height(1), false), Ok(true));
    assert_eq!(book.due(Height(1)), None);
    book.stored(&change.digest());
    assert_eq!(book.due(Height(1)), Some(change.digest()));
    assert_eq!(book.take(change, Height(1), false), Ok(false), "it is here");
}

#[test]
fn few_are_kept_and_none_that_came_too_late() {
    let mut book = Changes::default();
    for expires in 1..=KEPT_MAX as u64 {
        assert_eq!(book.take(change(1, 10 + expires), Height(1), false), Ok(true));
    }
    assert_eq!(book.take(change(1, 20), Height(1), false), Err(NotTaken::TooMany));
    assert_eq!(book.take(change(1, 20), Height(1), true), Ok(true), "a block orders it");
    let never = NotTaken::Never(ChangeError::Expired(Height(9)));
    assert_eq!(book.take(change(1, 9), Height(10), false), Err(never));
}

#[test]
fn what_may_be_ordered_no_more_is_dropped() {
    let [brief, long] = [change(1, 4), change(1, 9)];
    let mut book = book(&[brief.clone(), long.clone()]);
    assert!(book.expire(Height(4)).is_empty());
    assert_eq!(book.expire(Height(5)), [BodyRef::of_change(brief.digest())]);
    book.end(end(&long));
    assert!(book.expire(Height(20)).is_empty(), "it begins the next epoch");
}

#[test]
fn one_change_ends_an_epoch() {
    let [one, other] = [change(1, 9), change(1, 8)];
    let mut book = book(std::slice::from_ref(&one));
    book.end(end(&one));
    assert_eq!(book.due(Height(2)), None);
    assert_eq!(book.take(other, Height(2), true), Err(NotTaken::Ended));
    assert_eq!(book.next_file(), Some(&one.file));
}

#[test]
fn a_block_waits_for_a_change_that_is_good_at_its_height() {
    let [block, early] = [b"block", b"early"].map(|name| BlockId(hash(name)));
    let change = change(2, 9);
    let mut book = Changes::default();
    book.asked(block, change.digest(), Height(2));
    book.asked(early, change.digest(), Height(1));
    assert!(!book.allow(&block) && book.allow(&BlockId(hash(b"ends nothing"))));
    book.take(change.clone(), Height(1), false).expect("there is room");
    assert!(!book.allow(&block), "it is not durable");
    book.stored(&change.digest());
    assert!(book.allow(&block) && !book.allow(&early));
    book.tidy(|_| false);
    assert!(book.stops.is_empty());
}
