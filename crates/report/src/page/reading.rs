//! How to read a page: what its figures mean.

use super::Run;
use crate::results::{CommittedBy, Measurement};
use maud::{Markup, html};

/// How to read the page of these runs.
pub(super) fn how(runs: &[Run]) -> Markup {
    let any = |is: fn(&Run) -> bool| runs.iter().any(is);
    html! {
        section.reading {
            h2 { "How to read it" }
            ul {
                li {
                    b { "Open loop" } ", unless the configuration says otherwise. Operations are "
                    "scheduled ahead, and latency runs from an operation's scheduled time to its "
                    "(f+1)-th equal signed reply: a committee or client that stalls cannot hide "
                    "what it delayed."
                }
                @if any(|run| run.report.committed_by == CommittedBy::Validators) {
                    li {
                        b { "The slowest counts." } " The committed rate is that of the healthy "
                        "validator that executed least"
                        @if any(|run| run.report.measurement != Measurement::Bench) {
                            ", of the operations of all its clients"
                        }
                        "."
                    }
                }
                @if any(|run| run.report.measurement == Measurement::Bench) {
                    li {
                        b { "The load shares the machine" } " with all validators. Its own CPU time "
                        "is given apart."
                    }
                } @else {
                    li {
                        b { "By the load's clock." } " Latency is by the clock of the host that "
                        "offered the load, from the scheduled time to the answer; no other clock "
                        "is read."
                    }
                }
                @if any(|run| run.report.committed_by == CommittedBy::Answers) {
                    li {
                        b { "By answers alone." } " No validator was looked at: rates are those of "
                        "the load's own answers, and figures of validators are absent."
                    }
                }
                @if any(|run| matches!(run.report.measurement, Measurement::Merged(_))) {
                    li {
                        b { "Several loads." } " Rates are added over the time that all windows "
                        "have in common; counts and latencies are of all operations that count, "
                        "and percentiles are of all of them together."
                    }
                }
                li {
                    "This page holds its results: " code { "quorate report" } " draws it again, "
                    "and compares it with others."
                }
            }
        }
    }
}
