//! Kinds of figures, and points that are left out of them.

use super::{FILE, record, refusal};
use crate::experiment::figure::{self, Figure, lines};
use crate::experiment::{Experiment, Kept, Record, Setup, page};
use crate::load::Latencies;
use serde_json::json;
use tempfile::TempDir;

fn figure(text: &str) -> Figure {
    toml::from_str(&format!("name = \"f\"\ntitle = \"Title\"\nnote = \"Note.\"\n{text}")).unwrap()
}

fn by_rate() -> Figure {
    figure("x = \"rate\"\ny = \"latency_client_mean_ms\"\nseries = [\"validators\"]\n")
}

/// Three repeats of each rate, with these goodputs.
fn measured(validators: u16, rate: u64, goodputs: [f64; 3]) -> Vec<Record> {
    let one = |(seed, goodput): (u64, f64)| {
        let setup = Setup { validators, rate, seed, ..Setup::default() };
        record(setup, &[("goodput_tps", goodput), ("latency_client_mean_ms", 10.0)])
    };
    (1..).zip(goodputs).map(one).collect()
}

#[test]
fn points_that_do_not_keep_up_are_dropped_and_named() {
    let mut records = Vec::new();
    records.extend(measured(4, 100, [100.0, 101.0, 99.0]));
    records.extend(measured(4, 1_000, [960.0, 951.0, 940.0]));
    records.extend(measured(4, 2_000, [1_990.0, 1_980.0, 1_500.0]));
    records.extend(measured(4, 4_000, [1_800.0, 1_800.0, 1_800.0]));
    records.extend(measured(10, 1_000, [1_300.0, 1_300.0, 1_300.0]));
    records.extend(measured(10, 2_000, [0.0, 0.0, 0.0]));
    let drawn = |figure: &Figure| -> Vec<(String, Vec<f64>)> {
        let line = |line: &figure::Line| {
            (line.name.clone(), line.points.iter().map(|point| point.x.mean).collect())
        };
        lines(figure, &records).iter().map(line).collect()
    };
    let four = |rates: &[f64]| ("n = 4".to_owned(), rates.to_vec());
    let ten = |rates: &[f64]| ("n = 10".to_owned(), rates.to_vec());
    assert_eq!(
        drawn(&by_rate()),
        [four(&[100.0, 1_000.0, 2_000.0, 4_000.0]), ten(&[1_000.0, 2_000.0])],
        "unless it asks, a figure shows all"
    );
    let strict = Figure { goodput_within: Some(5.0), ..by_rate() };
    // The mean of the repeats decides; a goodput above the rate is none too low.
    assert_eq!(drawn(&strict), [four(&[100.0, 1_000.0]), ten(&[1_000.0])]);
    assert_eq!(
        figure::plots(&strict, &records)[0].note,
        "Note. Dropped, for goodput is more than 5 % below the offered rate: \
         n = 10 (at 2,000 tx/s); n = 4 (at 2,000 and at 4,000 tx/s)."
    );
    assert_eq!(figure::plots(&by_rate(), &records)[0].note, "Note.");
    let none: Vec<Record> = measured(4, 100, [1.0; 3]);
    assert!(lines(&strict, &none).is_empty(), "a line without points is none");
}

#[test]
fn a_point_without_goodput_is_not_judged() {
    let setup = Setup { rate: 500, ..Setup::default() };
    let records = [record(setup, &[("latency_client_mean_ms", 10.0)])];
    let strict = Figure { goodput_within: Some(5.0), ..by_rate() };
    assert_eq!(lines(&strict, &records).len(), 1);
}

/// A point whose operations take longer and longer, by so many µs each.
fn growing(rate: u64, seed: u64, by_us: u64) -> Record {
    let setup = Setup { rate, seed, warmup_s: 1, duration_s: 2, ..Setup::default() };
    let mut latencies = Latencies::new(1_000_000..3_000_000);
    for index in 0..300 {
        latencies.add(10_000 * index, 1_000 + by_us * index, 1);
    }
    let kept = Kept::new(latencies.over_time(), &latencies.distribution_us());
    Record { details: json!({ "latencies": kept }), ..record(setup, &[]) }
}

#[test]
fn a_heat_map_has_a_panel_for_each_point() {
    let heat = figure("kind = \"heat\"\nseries = [\"rate\"]\nlabel = \"{rate} a second\"\n");
    let records = [growing(200, 2, 9_000), growing(200, 1, 100), growing(50, 1, 0)];
    let panels = figure::plots(&heat, &records);
    let titles: Vec<&str> = panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["Title: 50 a second", "Title: 200 a second"]);
    let names: Vec<&str> = panels.iter().map(|panel| &*panel.name).collect();
    assert_eq!(names, ["f-1", "f-2"]);
    assert_eq!((panels[1].x.low, panels[1].x.high), (-1.0, 2.0), "the warm-up is shown");
    assert!(panels[1].y.high < 50.0, "of the first repeat, whose last operation takes 31 ms");
    let counted = |panel: &quorate_report::chart::Plot| -> u64 {
        panel.heat.iter().flat_map(|heat| &heat.cells).map(|cell| cell.count).sum()
    };
    assert_eq!((counted(&panels[0]), counted(&panels[1])), (300, 300));
    let only = Figure { only: "rate = 50".parse().unwrap(), ..heat };
    assert_eq!(figure::plots(&only, &records).len(), 1);
    assert!(figure::plots(&only, &measured(4, 50, [50.0; 3])).is_empty(), "nothing was kept");
}

#[test]
fn a_cumulative_figure_has_a_line_for_each_point() {
    let cumulative = figure("kind = \"cumulative\"\nseries = [\"rate\"]\n");
    let records = [growing(50, 1, 0), growing(200, 1, 100), growing(200, 2, 300)];
    let lines = lines(&cumulative, &records);
    assert_eq!(lines.len(), 2);
    let ends = |line: &figure::Line| {
        let (first, last) = (&line.points[0], &line.points[100]);
        ((first.x.mean, first.y.mean), (last.x.mean, last.y.mean))
    };
    let (first, last) = ends(&lines[0]);
    assert_eq!((first, last), ((first.0, 0.0), (first.0, 100.0)), "all took as long");
    let (first, last) = ends(&lines[1]);
    // Repeats end at 30.9 and 90.7 ms: the mean is drawn, to within the histogram's steps.
    assert!((first.0 - 21.0).abs() < 1.0 && (last.0 - 60.8).abs() < 1.0, "{first:?} {last:?}");
    assert_eq!(lines[1].points[100].x.count, 2);
    let plot = &figure::plots(&cumulative, &records)[0];
    assert_eq!((plot.series.len(), plot.dots.len()), (2, 0), "lines without markers");
    assert_eq!(plot.y.high, 100.0);
    assert_eq!(plot.x.label, "latency to f+1 equal replies (ms)");
}

#[test]
fn kinds_have_their_own_axes() {
    let line = "x = \"validators\"";
    let cases = [
        ((line, ""), "'x' is missing"),
        ((line, "kind = \"heat\""), "heat and cumulative figures have their own 'y'"),
        ((line, "kind = \"pie\"\nx = \"validators\""), "unknown variant `pie`"),
    ];
    for (change, expected) in cases {
        let said = refusal(change);
        assert!(said.contains(expected), "{said}\nis not\n{expected}");
    }
}

#[test]
fn a_page_shows_all_panels_and_a_file_holds_them() {
    let figures = "[[figure]]\nname = \"heat\"\ntitle = \"Heat\"\nnote = \"n\"\nkind = \"heat\"\n\
                   series = [\"rate\"]\n\n[[figure]]\nname = \"all\"\ntitle = \"All\"\nnote = \"n\"\n\
                   kind = \"cumulative\"\n";
    let text = format!("{}{figures}", FILE.split("[[figure]]").next().unwrap());
    let experiment = Experiment::parse("t", &text).unwrap();
    let folder = TempDir::new().unwrap();
    let records = [growing(50, 1, 0), growing(200, 1, 100)];
    let written =
        page::write(folder.path(), &experiment, &records, &page::Origin::default()).unwrap();
    assert_eq!(written.len(), 3, "one file a figure");
    let page = std::fs::read_to_string(&written[0]).unwrap();
    for id in ["heat-1", "heat-2", "all"] {
        assert!(page.contains(&format!("<figure id=\"{id}\">")), "{id}");
    }
    let svg = std::fs::read_to_string(&written[1]).unwrap();
    roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(svg.matches("class=\"panel\"").count(), 2);
}

/// What its runner doubts is drawn as a cross, said in the note, and listed with its reasons.
#[test]
fn a_point_in_doubt_is_a_cross_and_its_reasons_are_in_a_table() {
    let mut records = measured(4, 100, [100.0; 3]);
    records.extend(measured(4, 200, [200.0; 3]));
    records[4].details = json!({ "doubts": ["2 views timed out, and nobody crashed"] });
    assert_eq!(records[4].doubts(), ["2 views timed out, and nobody crashed"]);
    assert!(records[0].doubts().is_empty());
    let plot = &figure::plots(&by_rate(), &records)[0];
    let crosses: Vec<bool> = plot.dots[0].points.iter().map(|dot| dot.is_doubtful).collect();
    assert_eq!(crosses, [false, true], "one repeat of three is enough");
    assert!(plot.note.starts_with("Note. Crosses are in doubt"), "{}", plot.note);
    let experiment = Experiment::parse("t1.toml", FILE).unwrap();
    let html = page::html(&experiment, &records, &page::Origin::default());
    assert!(html.contains("2 views timed out, and nobody crashed"));
    assert!(!page::html(&experiment, &records[..3], &page::Origin::default()).contains("In doubt"));
}
