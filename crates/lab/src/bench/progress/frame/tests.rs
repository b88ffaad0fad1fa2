use super::{Frame, State};
use crate::bench::evidence::{Sample, ValidatorState};
use crate::status::ValidatorStatus;
use console::{measure_text_width, strip_ansi_codes};
use quorate_report::results::LatencyMs;
use std::time::{Duration, Instant};

const RATE: u64 = 12_345;

/// A look at `members` in so many seconds; the first was killed and the last is half as fast.
fn sample(start: Instant, second: u64, members: u64) -> Sample {
    let look = |id: u64| {
        let rate = if id + 1 == members { RATE / 2 } else { RATE };
        (id > 0).then(|| ValidatorStatus {
            view: 1_234_567 + second,
            executed: 1_234_567 + second,
            operations: second * rate,
            view_changes: second / 2,
            cpu_seconds: Some(0.5 * second as f64),
            rss_mb: Some(12_345.6),
            at: Some(start + Duration::from_secs(second)),
            ..Default::default()
        })
    };
    let lately = LatencyMs { mean: 1.0, p50: 12.3, p90: 1_234.5, p99: 56_789.0, max: 123_456.0 };
    Sample {
        second,
        looks: (0..members).map(look).collect(),
        answered: 0,
        lately,
        client_cpu_seconds: 0.0,
    }
}

/// State after six seconds.
fn state(members: u64) -> State {
    let mut state = State {
        title: "quorate bench · 4 validators · ed25519 · fsync".to_owned(),
        warmup_s: 2,
        span_s: 22,
        offered: "10,000/s".to_owned(),
        rate: Some(10_000),
        ..Default::default()
    };
    let (start, mut samples) = (Instant::now(), Vec::new());
    let mut states = vec![ValidatorState::Healthy; members as usize];
    states[0] = ValidatorState::Killed(2.5);
    for second in 0..=6 {
        samples.push(sample(start, second, members));
        state.take_in(&samples, &states);
    }
    state.note(3.0, "validator 0 killed".to_owned());
    state
}

/// All lines, with the note of the bar in its place.
fn lines(state: &State, width: usize, height: usize) -> Vec<String> {
    let Frame { above, bar, below, .. } = state.frame(width, height);
    let bar = bar.map(|bar| format!(" {}  {}", "━".repeat(bar.columns), bar.note));
    above.into_iter().chain(bar).chain(below).collect()
}

fn plain(state: &State, width: usize, height: usize) -> Vec<String> {
    let lines = lines(state, width, height);
    lines.iter().map(|line| strip_ansi_codes(line).into_owned()).collect()
}

#[test]
fn eighty_columns_are_enough() {
    for line in lines(&state(4), 79, 40) {
        assert!(measure_text_width(&line) <= 79, "{line}");
    }
}

/// Quantities without room are left out whole, never cut off.
#[test]
fn narrow_rows_have_fewer_quantities() {
    for (width, last) in [(79, "memory"), (71, "memory"), (59, "CPU"), (50, "height")] {
        let lines = plain(&state(4), width, 40);
        let heading = lines.iter().position(|line| line.contains("validator  state"));
        let rows = &lines[heading.expect("a heading")..][..5];
        assert!(rows[0].ends_with(last), "{width}: {rows:#?}");
        for row in rows {
            assert!(measure_text_width(row) <= width, "{width}: {row}");
        }
    }
}

#[test]
fn everything_of_a_small_committee_is_shown() {
    let text = plain(&state(4), 79, 40).join("\n");
    for part in [
        "4 s of 20 s",
        "16 s left",
        "committed     6,172 tx/s",
        "p90 1,235 ms",
        "killed at 2.5 s",
        "50 %",
        "12346 MiB",
        "3.0 s validator 0 killed",
        "1 view change in the last second",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(text.lines().filter(|line| line.contains("running")).count(), 3);
}

#[test]
fn a_large_committee_fits_into_a_small_terminal() {
    let lines = plain(&state(100), 79, 23);
    assert!(lines.len() <= 23, "{}", lines.join("\n"));
    let text = lines.join("\n");
    assert!(text.contains("killed at 2.5 s"), "{text}");
    let slowest = lines.iter().position(|line| line.contains("        99  running"));
    let others = lines.iter().position(|line| line.contains("         1  running"));
    assert!(slowest < others && slowest.is_some(), "the slowest comes first:\n{text}");
    let shown = lines.iter().filter(|line| line.contains("running") || line.contains("killed at"));
    let hidden = 100 - shown.count();
    assert!(text.contains(&format!("and {hidden} more")), "{text}");
}

#[test]
fn before_the_load_there_is_one_line() {
    let state = State { stage: Some("writing keys".to_owned()), ..Default::default() };
    assert_eq!(plain(&state, 79, 24), [" · writing keys"]);
    assert_eq!(state.line(), None);
}

#[test]
fn a_log_gets_the_same_in_one_line() {
    let line = state(4).line().expect("samples were taken in");
    assert_eq!(
        line,
        "    4 s  offered 10,000/s · committed 6,172/s · p50 12.3 ms · p99 56,789 ms · view 1,234,573"
    );
}
