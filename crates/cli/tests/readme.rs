//! The commands of the README and of the tour are understood, and the first one works.

use crate::common::{quorate, stderr, stdout};

const README: &str = include_str!("../../../README.md");
const TOUR: &str = include_str!("../../../docs/README.md");

/// Every command in a page's fenced blocks that runs this binary, without the binary.
fn commands(text: &str) -> Vec<String> {
    let binary = ["cargo run --release -- ", "target/release/quorate "];
    let fenced = text.split("```").skip(1).step_by(2);
    let lines = fenced.flat_map(str::lines).filter_map(|line| {
        let line = line.split(" #").next().unwrap_or_default().trim();
        binary.iter().find_map(|prefix| line.strip_prefix(prefix))
    });
    lines.map(str::to_owned).collect()
}

#[test]
fn the_first_command_works() {
    let first = commands(README).into_iter().next().expect("a README with a command");
    assert_eq!(first, "bench", "the first command is the one that shows it working");
    // At its full rate it would ask more of an unoptimised build than a test should.
    let output =
        quorate(&["bench", "--rate", "500", "--duration", "1", "--warmup", "1", "--no-report"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("on every healthy validator"), "{}", stdout(&output));
}

#[test]
fn every_command_is_understood() {
    let (readme, tour) = (commands(README), commands(TOUR));
    assert!(!readme.is_empty() && !tour.is_empty(), "{readme:?} {tour:?}");
    for command in [readme, tour].concat() {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.push("--help");
        let output = quorate(&arguments);
        assert!(output.status.success(), "`quorate {command}`: {}", stderr(&output));
    }
}
