use super::*;
use proptest::prelude::*;

/// Items are errors that add up; a part holds if its errors cancel.
fn search_errors(errors: &[i64]) -> (Vec<usize>, usize) {
    let items: Vec<(usize, i64)> = errors.iter().copied().enumerate().collect();
    let mut checks = 0;
    let bad = bad_items(&items, |part| {
        checks += 1;
        part.iter().map(|(_, error)| error).sum::<i64>() == 0
    });
    (bad.into_iter().map(|(index, _)| index).collect(), checks)
}

#[test]
fn nothing_is_bad_among_nothing() {
    assert_eq!(search_errors(&[]), (vec![], 0));
}

#[test]
fn one_check_when_all_is_well() {
    assert_eq!(search_errors(&[0; 134]), (vec![], 1));
}

#[test]
fn one_bad_item_costs_a_logarithm() {
    for position in 0..128_usize {
        let mut errors = [0; 128];
        errors[position] = 1;
        let (bad, checks) = search_errors(&errors);
        assert_eq!(bad, [position]);
        // One for the whole, then one a level, and one more wherever the bad item is on the left.
        let levels_left = 7 - position.count_ones() as usize;
        assert_eq!(checks, 8 + levels_left, "position {position}");
    }
}

#[test]
fn cancelling_errors_hide_together_or_fall_together() {
    assert_eq!(search_errors(&[0, 5, -5, 0]).0, Vec::<usize>::new(), "the whole cancels");
    assert_eq!(search_errors(&[5, -5, 0, 7]).0, [3], "cancel within the left half");
    assert_eq!(search_errors(&[0, 5, -5, 7]).0, [1, 2, 3], "are in different halves");
}

proptest! {
    /// Only bad items are blamed, and what remains sums to nothing.
    #[test]
    fn blames_only_the_bad_and_leaves_a_valid_sum(
        errors in prop::collection::vec(-2_i64..3, 0..60),
    ) {
        let (bad, _) = search_errors(&errors);
        prop_assert!(bad.iter().all(|index| errors[*index] != 0));
        let rest: i64 =
            (0..errors.len()).filter(|index| !bad.contains(index)).map(|index| errors[index]).sum();
        prop_assert_eq!(rest, 0);
    }
}
