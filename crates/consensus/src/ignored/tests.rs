use super::*;

#[test]
fn kinds_and_reasons_are_listed_in_the_order_of_their_numbers() {
    for (place, kind) in MessageKind::ALL.into_iter().enumerate() {
        assert_eq!(kind as usize, place, "{}", kind.name());
    }
    for (place, reason) in Ignored::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, place, "{}", reason.name());
    }
}

#[test]
fn each_kind_and_reason_is_counted_apart() {
    let mut counts = IgnoredCounts::default();
    assert_eq!(counts.iter().count(), 0);
    counts.count(MessageKind::Vote, Ignored::StaleView);
    counts.count(MessageKind::Vote, Ignored::StaleView);
    counts.count(MessageKind::Vote, Ignored::Duplicate);
    counts.count(MessageKind::Equivocation, Ignored::NotNeeded);
    let expected = [
        (MessageKind::Vote, Ignored::StaleView, 2),
        (MessageKind::Vote, Ignored::Duplicate, 1),
        (MessageKind::Equivocation, Ignored::NotNeeded, 1),
    ];
    assert!(counts.iter().eq(expected), "{counts:?}");
}

/// Logs and failed tests show what was counted, not the zeros.
#[test]
fn counts_are_written_without_the_zeros() {
    let mut counts = IgnoredCounts::default();
    assert_eq!(format!("{counts:?}"), "[]");
    counts.count(MessageKind::Vote, Ignored::StaleView);
    assert_eq!(format!("{counts:?}"), "[(Vote, StaleView, 1)]");
}
