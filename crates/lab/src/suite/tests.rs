use super::Limit::{AtLeast, AtMost};
use super::sit::{order, setup};
use super::*;
use crate::experiment::{Record, RunnerKind, Runners, Setup, Signatures, metrics, results};
use crate::quiet::{Quietness, Seen};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

const FILE: &str = r#"
id = "t"
title = "A title"
shows = "What it shows."

[base]
how = "certificates"
measure_ms = 1

[[row]]
key = "small"
title = "Four members"
at_least = { certificate_bytes = 100, one_check_us = 1e9 }

[[row]]
key = "large"
title = "Ten members"
validators = 10
at_most = { certificate_bytes = 1e6, paid_tps = 1 }

[[row]]
key = "keyed"
title = "Four members with keys"
keys_inside = true
beside = "small"
at_least = { ratio = 0.95 }
"#;

fn suite() -> Suite {
    Suite::parse("t.toml", FILE).unwrap()
}

fn refusal(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "{from} is in the file");
    Suite::parse("t.toml", &FILE.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn a_file_that_does_not_fit_is_refused_in_words() {
    let cases = [
        (
            "shows =",
            "show =",
            "t.toml: the file has an unknown field 'show': did you mean 'shows'?",
        ),
        ("measure_ms", "mesure_ms", "[base] has an unknown field 'mesure_ms'"),
        ("key = \"small\"\n", "", "a [[row]] has no 'key'"),
        ("\"small\"", "\"Small one\"", "the key 'Small one' must be of small letters, digits"),
        ("\"small\"", "\"large\"", "two rows have the key 'large'"),
        ("validators = 10", "validator = 10", "[[row]] large: it has an unknown field 'validator'"),
        ("validators = 10", "validators = 0", "[[row]] large: 'validators' is 0; it must be 1 to"),
        ("title = \"Four members\"\n", "", "[[row]] small: 'title' is missing"),
        ("one_check_us", "one_chek_us", "nothing is measured as 'one_chek_us': did you mean 'one_"),
        ("paid_tps = 1", "paid_tps = \"1\"", "the goal 'paid_tps' is \"1\", no number"),
        ("beside = \"small\"", "beside = \"smal\"", "which is no other row: did you mean 'small'?"),
        ("beside = \"small\"\n", "", "[[row]] keyed: 'ratio' is of a row that stands 'beside'"),
        ("validators = 10", "how = \"simulated\"", "'how' must be what this machine is timed with"),
        ("validators = 10", "find_max = true", "'find_max' and 'bounds' are of real processes"),
        ("id = \"t\"\n", "", "'id' is missing"),
        (
            "validators = 10",
            "rate_times = 2",
            "'rate_times' is of a row that stands 'beside' another",
        ),
        (
            "keys_inside = true",
            "rate_times = 0",
            "'rate_times' is 0; it must be above 0 and at most",
        ),
        ("paid_tps = 1", "goodput_ratio = 1", "'goodput_ratio' is of a row that stands 'beside'"),
        (
            "validators = 10",
            "fill = true",
            "'fill' is of real processes with the service 'kv' alone",
        ),
        ("validators = 10", "time_restart = true", "'time_restart' is of four real processes or"),
        ("validators = 10", "overload = true", "'overload' is of payments alone"),
        (
            "keys_inside = true",
            "how = \"processes\"\nfind_max = true\nrate_times = 2",
            "'find_max' finds",
        ),
    ];
    for (from, to, expected) in cases {
        let said = refusal(from, to);
        assert!(said.contains(expected), "{said}\nis not\n{expected}");
    }
    let nothing = FILE.split("[[row]]").next().unwrap();
    let said = Suite::parse("t.toml", nothing).unwrap_err().to_string();
    assert!(said.contains("there is no [[row]]"), "{said}");
}

#[test]
fn the_suite_that_comes_along_is_sound() {
    let suite = Suite::built_in();
    assert_eq!(suite.id, "suite");
    for row in &suite.rows {
        assert!(!row.goals.is_empty(), "{} has a goal", row.key);
        if row.setup.runner == RunnerKind::Processes {
            assert_eq!(row.setup.settings.timeout_ms, 500, "as `quorate bench` has it");
            let is_proven = row.setup.service.is_proven();
            assert_eq!(row.setup.settings.execution_certificates, is_proven, "{}", row.key);
        }
    }
    let runners = Runners::new(PathBuf::from("/nowhere/quorate"));
    let minutes = estimate_s(&suite, &runners) / 60.0;
    assert!(minutes < 50.0, "the whole takes {minutes} minutes");
}

#[test]
fn rows_are_chosen_by_their_keys() {
    let keys = |suite: &Suite| suite.rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>();
    let chosen = suite().only(&["keyed".to_owned(), "small".to_owned()]).unwrap();
    assert_eq!(keys(&chosen), ["small", "keyed"], "in the order of the suite");
    let said = suite().only(&["larg".to_owned()]).unwrap_err().to_string();
    let expected = "t has no row 'larg': did you mean 'large'?; its rows are small, large, keyed";
    assert_eq!(said, expected);
}

#[test]
fn a_seed_decides_the_order() {
    let suite = Suite::built_in();
    let keys = |seed| order(&suite, seed).iter().map(|row| row.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(1), keys(1));
    assert_ne!(keys(1), keys(2));
    assert_eq!(keys(1).into_iter().collect::<BTreeSet<_>>().len(), suite.rows.len());
}

/// The suite with `keyed` at twice the rate of `small`.
fn following() -> Suite {
    let text = FILE.replace("beside = \"small\"", "beside = \"small\"\nrate_times = 2");
    Suite::parse("t.toml", &text.replace("ratio = 0.95", "goodput_ratio = 0.9")).unwrap()
}

#[test]
fn a_row_whose_rate_follows_comes_right_after_the_other() {
    let suite = following();
    for seed in 0..20 {
        let keys: Vec<_> = order(&suite, seed).iter().map(|row| row.key.as_str()).collect();
        let place = |key| keys.iter().position(|other| *other == key).unwrap();
        assert_eq!(place("keyed"), place("small") + 1, "{keys:?}");
        assert_eq!(keys.len(), 3);
    }
    let only = suite.only(&["keyed".to_owned()]).unwrap();
    assert_eq!(only.rows.len(), 2, "the row that its rate follows from is measured too");
    let again = FILE.replace("validators = 10", "beside = \"keyed\"\nrate_times = 2");
    let again = again.replace("keys_inside = true", "rate_times = 2");
    let said = Suite::parse("t.toml", &again).unwrap_err().to_string();
    assert!(said.contains("from 'keyed', whose own follows from another's"), "{said}");
}

#[test]
fn a_rate_follows_from_what_was_measured() {
    let suite = following();
    let keyed = suite.rows.iter().find(|row| row.key == "keyed").unwrap();
    let measured =
        [row("large", &[("committed_tps", 5.0)]), row("small", &[("committed_tps", 150.4)])];
    assert_eq!(setup(keyed, &measured).unwrap().rate, 301);
    let said = setup(keyed, &measured[..1]).unwrap_err();
    assert_eq!(said, "its rate follows from that of small, which has none");
    assert_eq!(setup(&suite.rows[0], &[]).unwrap(), suite.rows[0].setup);
    let mut row = row("keyed", &[]);
    assert_eq!(row.work(), "The row keyed");
    (row.beside, row.rate_times) = (Some("small".to_owned()), Some(0.5));
    row.record.setup.rate = 7_400;
    assert_eq!(row.work(), "The row keyed: 7,400 a second, 0.5 × small");
}

#[test]
fn a_row_without_a_rate_to_follow_has_no_result() {
    let result = sat_of(&following(), false);
    let failed: Vec<_> = result.rows.iter().map(|row| row.record.failed.as_deref()).collect();
    let said = "its rate follows from that of small, which has none";
    assert_eq!(failed, [None, None, Some(said)], "certificates have no rate");
    assert!(render(&result).contains(said));
}

#[test]
fn goodput_is_divided_by_the_rate_of_the_other_row() {
    let suite = following();
    let of = |key: &str, numbers: &[(&str, f64)]| {
        let row = suite.rows.iter().find(|row| row.key == key).unwrap();
        RowResult::new(row, super::tests::row(key, numbers).record, Quietness::default())
    };
    let follower = [("committed_tps", 120.0), ("goodput_tps", 91.0)];
    let mut both = result(vec![of("keyed", &follower), of("small", &[("committed_tps", 100.0)])]);
    both.conclude(&suite);
    let keyed = &both.rows[1];
    assert_eq!((keyed.goals[0].measured, keyed.goals[0].met), (Some(0.91), Some(true)));
    assert_eq!(keyed.record.measured["ratio"], 1.2);
    assert!(render(&both).contains("goodput ≥ 0.9 of small met (0.91)"), "{}", render(&both));
}

#[test]
fn goals_without_a_column_say_what_was_measured() {
    let said = |metric: &str, limit, measured| {
        Goal { metric: metric.to_owned(), limit }.judge(measured).describe(None)
    };
    for (expected, metric, limit, measured) in [
        ("filled (puts/s) ≥ 100,000 missed (84,124)", "filled_tps", AtLeast(100_000.0), 84_123.6),
        ("restart (s) ≤ 1 met (0.84)", "restart_s", AtMost(1.0), 0.841),
        ("views that timed out ≤ 0 met (0)", "view_changes", AtMost(0.0), 0.0),
        ("memory, end over beginning ≤ 1.2 missed (1.31)", "rss_growth", AtMost(1.2), 1.312),
        ("≤ 2,000 bytes to disk a tx met", "written_bytes_per_tx", AtMost(2_000.0), 900.0),
        ("≤ 600 µs a height missed", "height_us", AtMost(600.0), 900.0),
    ] {
        assert_eq!(said(metric, limit, Some(measured)), expected);
    }
    assert_eq!(said("restart_s", AtMost(1.0), None), "restart (s) ≤ 1 not measured");
}

/// A sitting without committees.
fn sat(interrupted: bool) -> SuiteResult {
    sat_of(&suite(), interrupted)
}

fn sat_of(suite: &Suite, interrupted: bool) -> SuiteResult {
    let folder = tempfile::tempdir().unwrap();
    let machine = machine("c0ffee");
    let sitting =
        Sitting { suite, seed: 3, machine: &machine, folder: folder.path(), command: "c" };
    let mut begun = Vec::new();
    let mut hear = |event: Event<'_>| {
        if let Event::Started { row, place, total } = event {
            begun.push((row.key.clone(), place, total));
        }
    };
    let runners = Runners::new(PathBuf::from("/nowhere/quorate"));
    let result = sit(&sitting, &runners, &mut hear, &AtomicBool::new(interrupted));
    let heard: Vec<_> = begun.iter().map(|(key, ..)| key.clone()).collect();
    assert_eq!(heard[..], result.order[..heard.len()]);
    assert!(
        begun.iter().enumerate().all(|(at, (_, place, total))| (*place, *total) == (at + 1, 3))
    );
    result
}

fn machine(commit: &str) -> Value {
    json!({ "commit": commit, "cpu": "a cpu", "cores": 2, "optimised": true, "disk": "ext4" })
}

#[test]
fn every_row_is_measured_and_judged() {
    let result = sat(false);
    let keys: Vec<&str> = result.rows.iter().map(|row| row.row.as_str()).collect();
    assert_eq!(keys, ["small", "large", "keyed"], "in the order of the suite");
    let met = |row: usize| result.rows[row].goals.iter().map(|goal| goal.met).collect::<Vec<_>>();
    assert_eq!(met(0), [Some(true), Some(false)]);
    assert_eq!(met(1), [Some(true), None], "payments were not measured");
    assert_eq!(met(2), [None], "certificates have no rate to divide");
    assert_eq!(result.goals(), (2, 5));
    assert!(result.rows.iter().all(|row| row.quietness.before.sync_p50_ms.is_some()));
    let text = render(&result);
    for words in ["A title", "2 of 5 goals met", "small: Four members", "not measured", "missed"] {
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn an_interrupted_sitting_says_so() {
    let result = sat(true);
    assert_eq!(result.ended_early.as_deref(), Some("interrupted"));
    assert_eq!((result.rows.len(), result.order.len()), (0, 3));
    assert!(markdown(&result).contains("It ended early: interrupted."));
}

fn row(key: &str, numbers: &[(&str, f64)]) -> RowResult {
    let setup = Setup { runner: RunnerKind::Processes, ..Setup::default() };
    RowResult {
        row: key.to_owned(),
        title: format!("The row {key}"),
        beside: None,
        rate_times: None,
        goals: Vec::new(),
        quietness: Quietness::default(),
        disturbances: Vec::new(),
        against: None,
        record: Record {
            format: results::FORMAT,
            experiment: "t".to_owned(),
            preset: key.to_owned(),
            shard: None,
            key: setup.key(),
            setup,
            measured: numbers.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            failed: None,
            signatures: Signatures::Real,
            started: "2026-01-31 12:00:00 UTC".to_owned(),
            wall_s: 1.0,
            machine: machine("c0ffee"),
            details: Value::Null,
        },
    }
}

fn result(rows: Vec<RowResult>) -> SuiteResult {
    SuiteResult {
        suite_format: FORMAT,
        suite: "t".to_owned(),
        title: "A title".to_owned(),
        shows: "What it shows.".to_owned(),
        started: "2026-01-31 12:00:00 UTC".to_owned(),
        wall_s: 200.0,
        command: "quorate bench --suite".to_owned(),
        seed: 1,
        order: rows.iter().map(|row| row.row.clone()).collect(),
        ended_early: None,
        machine: machine("c0ffee"),
        against: None,
        rows,
    }
}

#[test]
fn a_row_beside_another_has_a_ratio() {
    let suite = suite();
    let of = |key: &str, rate| {
        let row = suite.rows.iter().find(|row| row.key == key).unwrap();
        let record = super::tests::row(key, &[("committed_tps", rate)]).record;
        RowResult::new(row, record, Quietness::default())
    };
    let mut both = result(vec![of("keyed", 95_000.0), of("small", 100_000.0)]);
    both.conclude(&suite);
    let [_, keyed] = &both.rows[..] else { panic!("two rows") };
    assert_eq!((keyed.goals[0].measured, keyed.goals[0].met), (Some(0.95), Some(true)));
    assert!(render(&both).contains("≥ 0.95 of small met (0.95)"), "{}", render(&both));
    let mut alone = result(vec![of("keyed", 95_000.0)]);
    alone.conclude(&suite);
    assert_eq!(alone.rows[0].goals[0].met, None, "nothing to divide by");
}

#[test]
fn the_quickest_write_of_the_sitting_judges_the_others() {
    let suite = suite();
    let of = |index: usize, ms| {
        let before = Seen { sync_p50_ms: Some(ms), ..Seen::default() };
        let row = &suite.rows[index];
        let record = super::tests::row(&row.key, &[]).record;
        RowResult::new(row, record, Quietness { before, ..Quietness::default() })
    };
    let mut both = result(vec![of(0, 2.0), of(1, 20.0)]);
    both.conclude(&suite);
    let said = "before it a synced write took 20.0 ms, and 2.0 at another time";
    assert!(both.rows[0].disturbances.is_empty());
    assert_eq!(both.rows[1].disturbances, [said]);
    let text = render(&both);
    assert!(text.contains("large *") && text.contains(said), "{text}");
}

#[test]
fn rows_are_compared_where_their_settings_are_the_same() {
    let rows = |p50| {
        vec![
            row("same", &[("committed_tps", 100.0), ("latency_client_p50_ms", p50)]),
            row("changed", &[("committed_tps", 100.0)]),
            row("new", &[("committed_tps", 100.0)]),
        ]
    };
    let mut earlier = result(rows(4.0));
    earlier.rows.pop();
    earlier.rows[1].record.setup.rate += 1;
    earlier.rows[0].disturbances.push("noise".to_owned());
    let mut now = result(rows(3.0));
    now.compare(&earlier);
    let compared = |index: usize| now.rows[index].against.clone().unwrap();
    assert_eq!(compared(0).ratios["committed_tps"], 1.0);
    assert_eq!(compared(0).ratios["latency_client_p50_ms"], 0.75);
    let notes: Vec<_> = (0..3).map(|index| compared(index).note.unwrap()).collect();
    assert_eq!(notes, ["not quiet then", "other settings", "not there"]);
    assert!(compared(1).ratios.is_empty() && compared(2).ratios.is_empty());
    let follows = |rate| {
        let mut row = row("same", &[("committed_tps", 100.0)]);
        (row.rate_times, row.record.setup.rate) = (Some(2.0), rate);
        result(vec![row])
    };
    let mut follower = follows(100);
    follower.compare(&follows(120));
    assert_eq!(follower.rows[0].against.clone().unwrap().ratios["committed_tps"], 1.0);
    let searched = |rate| {
        let mut searched = follows(rate);
        (searched.rows[0].rate_times, searched.rows[0].record.setup.find_max) = (None, true);
        searched
    };
    let mut found = searched(100);
    found.compare(&searched(120));
    assert!(found.rows[0].against.clone().unwrap().note.is_none(), "it begins elsewhere");
    let text = render(&now);
    assert!(
        text.contains("Ratios to the result of 2026-01-31 12:00:00 UTC, commit c0ffee"),
        "{text}"
    );
    assert!(text.contains("×0.75"), "{text}");
}

#[test]
fn results_of_another_machine_or_build_are_refused() {
    let earlier = result(Vec::new());
    assert!(earlier.check_earlier(&machine("another commit"), false).is_ok());
    let mut other = machine("c0ffee");
    other["cores"] = json!(4);
    let said = earlier.check_earlier(&other, false).unwrap_err().to_string();
    assert!(
        said.contains("another machine (a cpu, 2 cores) than this one (a cpu, 4 cores)"),
        "{said}"
    );
    assert!(earlier.check_earlier(&other, true).is_ok());
    other["optimised"] = json!(false);
    let said = earlier.check_earlier(&other, true).unwrap_err().to_string();
    assert!(said.ends_with("was optimised, and this one was not optimised"), "{said}");
}

#[test]
fn a_result_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("r.json");
    let mut written = result(vec![row("one", &[("committed_tps", 100.0)])]);
    written.compare(&written.clone());
    written.write(&path).unwrap();
    assert_eq!(SuiteResult::read(&path).unwrap(), written);
    let said = |text: &str| {
        std::fs::write(&path, text).unwrap();
        SuiteResult::read(&path).unwrap_err().to_string()
    };
    assert!(said("{").contains("is no result of a suite"));
    assert!(said("{\"format\": 2}").contains("it has no 'suite_format'"));
    assert!(
        said("{\"suite_format\": 9}").contains("holds a result of format 9; this binary reads 1")
    );
    let none = SuiteResult::read(&folder.path().join("none.json")).unwrap_err().to_string();
    assert!(none.starts_with("cannot read"), "{none}");
}

#[test]
fn a_page_has_everything_and_a_commit() {
    let mut shown = result(vec![row("one", &[("committed_tps", 123_456.0)]), row("two", &[])]);
    shown.rows[0].disturbances.push("before it others used 9 % of the processors".to_owned());
    shown.rows[1].record.failed = Some("nobody kept up".to_owned());
    shown.compare(&shown.clone());
    let page = markdown(&shown);
    for words in [
        "# A title\n\nWhat it shows.\n\n```console\nquorate bench --suite\n```\n",
        "Commit c0ffee; a cpu, 2 cores",
        "| row | tx/s | p50 ms |",
        "| one * | 123,456 | - |",
        "`one`, `two`",
        "## Against an earlier result\n",
        "| one | ×1.00 |",
        "## Without a result\n\n- `two`: nobody kept up.\n",
        "## Where the machine was not quiet\n\n- `one`: before it others used 9 %",
    ] {
        assert!(page.contains(words), "{words} in\n{page}");
    }
}

#[test]
fn figures_of_a_changed_or_slow_binary_go_into_no_page() {
    assert_eq!(check_binary(&machine("c0ffee")), Ok(()));
    for commit in ["c0ffee-dirty", "unknown"] {
        let said = check_binary(&machine(commit)).unwrap_err();
        assert!(said.contains(&format!("that of this binary is {commit}")), "{said}");
    }
    let mut slow = machine("c0ffee");
    slow["optimised"] = json!(false);
    assert!(check_binary(&slow).unwrap_err().contains("build with --release"));
}

#[test]
fn every_column_is_of_known_metrics() {
    for row in Suite::built_in().rows {
        for goal in row.goals {
            assert!(metrics::find(&goal.metric).is_some(), "{}", goal.metric);
        }
    }
    for name in [
        "committed_tps",
        "per_core_tps",
        "height_us",
        "machine_bound_tps",
        "bound_share",
        "written_bytes_per_tx",
    ] {
        assert!(metrics::find(name).is_some() && figures::named(name).is_some(), "{name}");
    }
}
