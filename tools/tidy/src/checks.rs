//! The checks: each reads the tree and returns what it objects to.

mod columns;
mod constants;
mod decisions;
mod docs;
mod functions;
mod links;
mod modules;
mod names;
mod readme;
mod tags;
mod unused;

use crate::circles;
use crate::finding::Finding;
use crate::tree::Tree;

/// A rule of the tree's form.
pub(crate) struct Check {
    /// Name on the command line.
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Tree) -> Vec<Finding>,
}

/// All checks, in the order in which they are printed.
pub(crate) const ALL: &[Check] = &[
    Check { name: "columns", run: columns::check },
    Check { name: "functions", run: functions::check },
    Check { name: "interrogatives", run: docs::interrogatives },
    Check { name: "short-docs", run: docs::short },
    Check { name: "unused", run: unused::check },
    Check { name: "constants", run: constants::check },
    Check { name: "tags", run: tags::check },
    Check { name: "decisions", run: decisions::check },
    Check { name: "links", run: links::check },
    Check { name: "modules", run: modules::check },
    Check { name: "names", run: names::check },
    Check { name: "readme", run: readme::check },
    Check { name: "circles", run: circles::check },
];
