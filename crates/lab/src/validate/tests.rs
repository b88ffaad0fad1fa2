use super::{Pair, ValidationSpec, markdown, pairs, table};
use crate::experiment::{Record, RunnerKind, Setup, results};
use quorate_storage::Durability;
use serde_json::{Value, json};

fn spec() -> ValidationSpec {
    ValidationSpec {
        sizes: vec![4, 10],
        durabilities: vec![Durability::Fsync, Durability::Os],
        delays_ms: vec![0, 25],
        rates: vec![100, 20_000],
        prices: "here.toml".to_owned(),
        cores: 2,
        warmup_s: 4,
        duration_s: 6,
        seed: 1,
    }
}

fn record(setup: Setup, committed_tps: f64, p50_ms: f64) -> Record {
    let numbers = [
        ("committed_tps", committed_tps),
        ("latency_client_p50_ms", p50_ms),
        ("cpu_cores", committed_tps / 1e4),
    ];
    Record {
        format: results::FORMAT,
        experiment: "validate".to_owned(),
        preset: "points".to_owned(),
        shard: None,
        key: setup.key(),
        setup,
        measured: numbers.map(|(name, number)| (name.to_owned(), number)).into(),
        failed: None,
        signatures: Default::default(),
        started: String::new(),
        wall_s: 1.0,
        machine: json!({}),
        details: Value::Null,
    }
}

fn model_of(real: &Record) -> Setup {
    Setup { runner: RunnerKind::Simulated, ..real.setup.clone() }
}

fn pair(real: (f64, f64), model: (f64, f64)) -> Pair {
    let setup = spec().points().pop().expect("points");
    let modelled = Setup { runner: RunnerKind::Simulated, ..setup.clone() };
    Pair { real: record(setup, real.0, real.1), model: record(modelled, model.0, model.1) }
}

#[test]
fn points_are_every_combination_on_one_host() {
    let points = spec().points();
    assert_eq!(points.len(), 2 * 2 * 2 * 2);
    for point in &points {
        assert_eq!(point.validate(), Ok(()));
        assert_eq!(point.validators_per_host, point.validators);
    }
    assert_eq!((points[0].validators, points[8].validators), (4, 10));
}

#[test]
fn ratios_are_the_model_s_and_latency_counts_where_both_keep_up() {
    let within = pair((20_000.0, 30.0), (19_000.0, 33.0));
    assert_eq!(within.ratios().throughput, Some(0.95));
    assert_eq!(within.ratios().latency, Some(1.1));
    assert!(within.judge());
    assert!(!pair((20_000.0, 30.0), (20_000.0, 20.0)).judge(), "a third too quick");
    // More is offered than both take: the latency is that of a queue.
    let beyond = pair((10_000.0, 900.0), (11_000.0, 2_000.0));
    assert_eq!((beyond.ratios().latency, beyond.judge()), (None, true));
    let mut nothing = within;
    nothing.real.failed = Some("it exited".to_owned());
    nothing.model.details = json!({ "doubts": ["the backlog grows"] });
    assert_eq!(nothing.remarks(), ["real: it exited", "model: the backlog grows"]);
    nothing.real.measured.clear();
    assert!(!nothing.judge());
}

#[test]
fn a_ratio_that_misses_the_goal_is_marked() {
    let both = [pair((20_000.0, 30.0), (20_000.0, 20.0)), pair((10_000.0, 9.0), (10_000.0, 9.0))];
    let (text, page) = (table(&both), markdown(&both));
    assert_eq!(text.matches("0.67!").count(), 1, "{text}");
    assert_eq!(page.lines().count(), 2 + 2, "{page}");
    assert_eq!(
        page.lines().nth(2).expect("a row"),
        "| 10 | os | 25 ms | 20,000 | 20,000 | 20,000 | 1.00 | 30.0 | 20.0 | **0.67** | 2.00 | 2.00 | 1.00 |"
    );
    assert!(page.ends_with("| 9.00 | 9.00 | - | 1.00 | 1.00 | 1.00 |\n"), "{page}");
}

#[test]
fn lines_are_pairs_or_refused() {
    let Pair { real, model } = pair((1.0, 1.0), (1.0, 1.0));
    let both = vec![real.clone(), model.clone()];
    assert_eq!(pairs(both).expect("a pair").len(), 1);
    assert!(pairs(vec![model.clone(), real.clone()]).is_err());
    let other = Record { setup: Setup { rate: 7, ..model.setup.clone() }, ..model };
    let refused = pairs(vec![real.clone(), other.clone()]).unwrap_err();
    assert!(refused.contains("is not followed by its model"), "{refused}");
    let begun = pairs(vec![real.clone(), Record { setup: model_of(&real), ..other }, real]);
    assert_eq!(begun.expect("a pair and a half").len(), 1);
}
