use super::{Beside, Filled, Restarted};

#[test]
fn a_full_state_and_a_restart_have_lines_of_their_own() {
    let filled = Filled {
        keys: 1_000_000,
        batch: 64,
        seconds: 21.34,
        puts_tps: 46_860.0,
        retried: 0,
        written_bytes_per_key: Some(1_204.0),
    };
    let restarted = Restarted { validator: 3, operations: 65_625, seconds: 0.841 };
    let beside = Beside {
        filled: Some(filled),
        restarted: Some(restarted),
        written_bytes_per_tx: Some(1_820.4),
        ..Beside::default()
    };
    let text =
        "1,000,000 keys in 21.3 s, 46,860 puts/s in batches of 64 · 1,204 bytes to disk for each";
    let expected = [
        ("filled", text),
        ("written", "1,820 bytes to disk by one validator for each tx"),
        (
            "restart",
            "validator 3, killed after 65,625 operations, may sign again 0.84 s after its start",
        ),
    ];
    assert_eq!(beside.figures(), expected.map(|(name, text)| (name, text.to_owned())));
    let again = Filled { retried: 1_024, written_bytes_per_key: None, ..filled };
    let figures = Beside { filled: Some(again), ..Beside::default() }.figures();
    assert!(figures[0].1.ends_with("in batches of 64 · 1,024 brought again"), "{figures:?}");
}
