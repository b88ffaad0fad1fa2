use super::{
    Axis, COLOURS, Cell, Heat, Kind, Look, Mark, Notches, Plot, STYLE, Series, Size, indent,
    standalone,
};

const SIZE: Size = Size { width: 600.0, height: 200.0 };

fn svg(plot: &Plot, size: Size) -> String {
    super::svg(plot, size, indent([plot], size))
}

fn series(name: &str, look: Look, points: Vec<(f64, Option<f64>)>) -> Series {
    Series { name: name.to_owned(), colour: 1, look, points }
}

fn plot(series: Vec<Series>) -> Plot {
    Plot {
        name: "test".into(),
        title: "A title".to_owned(),
        note: "A note".to_owned(),
        x: Axis::exact("time (s)", "s", Kind::Linear, -2.0, 10.0),
        y: Axis::from_zero("rate (tx/s)", "tx/s", [100.0].into_iter()),
        series,
        heat: None,
        marks: Vec::new(),
        notches: None,
        shade: None,
        dots: Vec::new(),
    }
}

/// Reads it with a strict parser, and gives the attribute of each path that has one.
fn attributes(svg: &str, name: &str) -> Vec<String> {
    let document =
        roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}:\n{svg}"));
    let nodes = document.descendants().filter(|node| node.has_tag_name("path"));
    nodes.filter_map(|node| node.attribute(name).map(str::to_owned)).collect()
}

fn texts(svg: &str) -> Vec<String> {
    let document =
        roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}:\n{svg}"));
    let nodes = document.descendants().filter(|node| node.tag_name().name() == "text");
    nodes.filter_map(|node| node.text().map(str::to_owned)).collect()
}

/// All numbers in a path.
fn numbers(path: &str) -> Vec<f64> {
    let parts = path.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    parts.filter(|part| !part.is_empty()).map(|part| part.parse().expect("a number")).collect()
}

#[test]
fn every_point_is_drawn() {
    let points: Vec<_> = (0..57).map(|x| (f64::from(x) / 6.0, Some(f64::from(x)))).collect();
    let drawn = svg(&plot(vec![series("a", Look::Plain, points)]), SIZE);
    let paths = attributes(&drawn, "d");
    assert_eq!(paths.len(), 1);
    assert_eq!(paths[0].matches(['M', 'L']).count(), 57);
    assert_eq!(paths[0].matches('M').count(), 1, "in one line");
    assert_eq!(attributes(&drawn, "data-name"), ["a"]);
}

#[test]
fn a_gap_stays_a_gap_and_a_lonely_point_is_seen() {
    let at = |x: f64, y: Option<f64>| (x, y);
    let points = vec![
        at(0.0, Some(1.0)),
        at(1.0, Some(2.0)),
        at(2.0, None),
        at(3.0, Some(f64::NAN)),
        at(4.0, Some(3.0)),
        at(5.0, None),
        at(6.0, Some(4.0)),
        at(7.0, Some(5.0)),
    ];
    let path =
        attributes(&svg(&plot(vec![series("a", Look::Strong, points)]), SIZE), "d").remove(0);
    assert_eq!(path.matches('M').count(), 3, "{path}");
    assert_eq!(path.matches(['M', 'L']).count(), 5, "{path}");
    assert_eq!(path.matches("h0.1").count(), 1, "{path}");
}

#[test]
fn steps_have_one_top_each_and_end_at_the_floor() {
    let points = vec![(0.0, Some(10.0)), (1.0, Some(20.0)), (2.0, Some(5.0)), (3.0, None)];
    let path = attributes(&svg(&plot(vec![series("a", Look::Steps, points)]), SIZE), "d").remove(0);
    assert_eq!(path.matches('H').count(), 3, "{path}");
    assert!(path.ends_with('Z'), "{path}");
}

#[test]
fn everything_lies_inside_the_drawing() {
    let points: Vec<_> =
        (0..100).map(|x| (f64::from(x) - 50.0, Some(f64::from(x) * 1e9))).collect();
    let mut plot = plot(vec![series("a", Look::Plain, points)]);
    plot.heat = Some(Heat {
        counted: "operations".to_owned(),
        cells: vec![Cell { x: (-100.0, 100.0), y: (-5.0, 1e12), count: u64::MAX }],
    });
    for path in attributes(&svg(&plot, SIZE), "d") {
        let inside = numbers(&path).into_iter().all(|value| (-600.0..=601.0).contains(&value));
        assert!(inside, "{path}");
    }
}

#[test]
fn labels_units_ticks_and_legend_are_there() {
    let mut plot = plot(vec![series("the line", Look::Plain, vec![(0.0, Some(1.0))])]);
    plot.marks = vec![Mark { at: 4.0, text: "kill 0".to_owned() }];
    plot.notches =
        Some(Notches { name: "view change".to_owned(), at: vec![(5.0, "three".to_owned())] });
    plot.shade = Some((-2.0, 0.0, "warm-up".to_owned()));
    let drawn = svg(&plot, SIZE);
    let texts = texts(&drawn);
    for wanted in
        ["time (s)", "rate (tx/s)", "the line", "kill 0", "view change", "warm-up", "0", "10", "50"]
    {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
    }
    assert!(drawn.contains("<title>three</title>"), "a notch says what it means");
    assert!(drawn.contains("data-x=\"linear ") && drawn.contains(" tx/s\""), "{drawn}");
}

#[test]
fn marks_that_would_overlap_get_rows_of_their_own() {
    let mut plot = plot(Vec::new());
    let mark = |at: f64, text: &str| Mark { at, text: text.to_owned() };
    plot.marks = vec![mark(4.0, "kill 0"), mark(4.1, "kill 1"), mark(9.9, "restart 1")];
    let drawn = svg(&plot, SIZE);
    let document = roxmltree::Document::parse(&drawn).expect("well-formed");
    let names = document.descendants().filter(|n| n.attribute("class") == Some("mark-name"));
    let places: Vec<(f64, f64)> = names
        .map(|node| {
            let number = |name| node.attribute(name).and_then(|text| text.parse().ok());
            (number("x").expect("an x"), number("y").expect("a y"))
        })
        .collect();
    assert_ne!(places[0].1, places[1].1, "{places:?}");
    assert!(places[2].0 < 560.0, "a name at the edge is pulled inside: {places:?}");
}

#[test]
fn what_leaves_the_chart_is_written_at_its_edge() {
    let points =
        vec![(0.0, Some(50.0)), (1.0, Some(12_345.0)), (2.0, Some(900.0)), (3.0, Some(9.0))];
    let drawn = svg(&plot(vec![series("a", Look::Plain, points)]), SIZE);
    let peaks: Vec<_> = texts(&drawn).into_iter().filter(|text| text.starts_with('↑')).collect();
    assert_eq!(peaks, ["↑ 12,345"], "one for the stretch, and its greatest");
}

#[test]
fn a_peak_is_not_written_over_the_shades_name() {
    let points = vec![(-1.9, Some(12_345.0)), (0.0, Some(50.0)), (8.0, Some(900.0))];
    let mut plot = plot(vec![series("a", Look::Plain, points)]);
    plot.shade = Some((-2.0, 4.0, "warm-up".to_owned()));
    let drawn = svg(&plot, SIZE);
    let document = roxmltree::Document::parse(&drawn).expect("well-formed");
    let row = |words: &str| {
        let mut texts = document.descendants().filter(|node| node.has_tag_name("text"));
        let found = texts.find(|node| node.text() == Some(words));
        found.and_then(|node| node.attribute("y")).expect(words)
    };
    assert_ne!(row("↑ 12,345"), row("warm-up"));
    assert_eq!(row("↑ 900"), row("warm-up"));
}

#[test]
fn hostile_texts_stay_texts() {
    let hostile = "</text><script>alert('1')</script>&\"\u{1}\u{0}]]>";
    let mut plot = plot(vec![series(hostile, Look::Plain, vec![(0.0, Some(1.0)), (1.0, None)])]);
    plot.title = hostile.to_owned();
    plot.note = hostile.to_owned();
    plot.x.label = hostile.to_owned();
    plot.marks = vec![Mark { at: 1.0, text: hostile.to_owned() }];
    plot.notches = Some(Notches { name: hostile.to_owned(), at: vec![(1.0, hostile.to_owned())] });
    plot.shade = Some((-2.0, 5.0, hostile.to_owned()));
    let shown = hostile.replace(['\u{1}', '\u{0}'], "\u{fffd}");
    for drawn in [svg(&plot, SIZE), standalone(hostile, &[hostile.to_owned()], &[plot], SIZE)] {
        let document = roxmltree::Document::parse(&drawn).expect("well-formed");
        assert!(document.descendants().all(|node| node.tag_name().name() != "script"));
        assert!(texts(&drawn).contains(&shown), "{drawn}");
    }
}

#[test]
fn nothing_to_draw_is_drawn_without_numbers_that_are_none() {
    let mut empty =
        plot(vec![series("a", Look::Plain, Vec::new()), series("b", Look::Steps, Vec::new())]);
    empty.y = Axis::log("latency (ms)", "ms", std::iter::empty());
    empty.heat = Some(Heat { counted: "operations".to_owned(), cells: Vec::new() });
    let drawn = svg(&empty, SIZE);
    assert!(texts(&drawn).contains(&"latency (ms)".to_owned()));
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
}

#[test]
fn a_chart_of_its_own_brings_its_style_and_ground() {
    let plots = [plot(Vec::new()), plot(Vec::new())];
    let drawn = standalone("Heading", &["a line".to_owned()], &plots, SIZE);
    let document = roxmltree::Document::parse(&drawn).expect("well-formed");
    assert_eq!(document.root_element().tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
    assert!(drawn.contains("prefers-color-scheme:dark") && drawn.contains("class=\"ground\""));
    assert!(!drawn.contains("http://www.w3.org/1999/xlink") && !drawn.contains("url("));
    let texts = texts(&drawn);
    assert!(texts.contains(&"Heading".to_owned()) && texts.contains(&"a line".to_owned()));
    assert_eq!(texts.iter().filter(|text| *text == "A title").count(), 2);
}

#[test]
fn what_is_written_above_a_chart_stays_inside_it() {
    let long = ["word"; 60].join(" ");
    let drawn = standalone("Heading", std::slice::from_ref(&long), &[plot(Vec::new())], SIZE);
    let written: Vec<_> = texts(&drawn).into_iter().filter(|text| text.contains("word")).collect();
    assert!(written.len() > 1 && written.iter().all(|line| line.len() < 90), "{written:?}");
    assert_eq!(written.join(" "), long, "nothing is lost");
}

#[test]
fn headings_and_titles_stay_inside_and_nothing_is_written_over_another() {
    let long = ["word"; 60].join(" ");
    let titled = Plot { title: long.clone(), ..plot(Vec::new()) };
    let drawn = standalone(&long, &[], &[titled], SIZE);
    let document = roxmltree::Document::parse(&drawn).expect("well-formed");
    let written: Vec<_> = document
        .descendants()
        .filter(|node| matches!(node.attribute("class"), Some("heading" | "title")))
        .collect();
    assert!(written.len() > 4, "{}", written.len());
    let begins: Vec<f64> = written
        .iter()
        .map(|node| node.attribute("y").expect("y").parse().expect("a number"))
        .collect();
    assert!(begins.windows(2).all(|pair| pair[1] >= pair[0] + 18.0), "{begins:?}");
    let widest = |class: &str| {
        let of = written.iter().filter(|node| node.attribute("class") == Some(class));
        of.filter_map(roxmltree::Node::text).map(str::len).max().expect("some")
    };
    assert!(
        widest("heading") < 75 && widest("title") < 90,
        "{} {}",
        widest("heading"),
        widest("title")
    );
}

#[test]
fn every_colour_has_a_style_in_light_dark_and_print() {
    for colour in 0..COLOURS {
        assert_eq!(STYLE.matches(&format!("--c{colour}:#")).count(), 3, "c{colour}");
        assert!(STYLE.contains(&format!(".c{colour}{{")), "c{colour}");
    }
    for level in 0..10 {
        assert_eq!(STYLE.matches(&format!("--h{level}:#")).count(), 3, "h{level}");
    }
}

#[test]
fn charts_under_one_another_begin_at_one_place() {
    let narrow = plot(Vec::new());
    let wide = Plot { y: Axis::from_zero("a (b)", "b", [1e9].into_iter()), ..narrow.clone() };
    let drawn = standalone("", &[], &[narrow, wide], SIZE);
    let document = roxmltree::Document::parse(&drawn).expect("well-formed");
    let axes = document.descendants().filter(|node| node.attribute("class") == Some("axis"));
    let begins: Vec<_> = axes.filter_map(|node| node.attribute("x1")).collect();
    assert_eq!(begins.len(), 2);
    assert_eq!(begins[0], begins[1]);
}
