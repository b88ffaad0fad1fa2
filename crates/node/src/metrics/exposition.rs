//! Forms of `/metrics`: OpenMetrics for those who ask for it, and Prometheus' older text.
//!
//! Registries print OpenMetrics, where a counter's family has the name without `_total`. Readers
//! of the older text, `curl` and `promtool check metrics` among them, want the name that samples
//! have, and know no units and no end.

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything in a registry, as OpenMetrics.
pub(crate) fn print(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).expect("writing into memory cannot fail");
    text
}

/// The answer to somebody who accepts what these headers say.
pub(crate) fn answer(asked: &HeaderMap, open_metrics: String) -> Response {
    if accepts_open_metrics(asked) {
        ([(header::CONTENT_TYPE, OPEN_METRICS)], open_metrics).into_response()
    } else {
        ([(header::CONTENT_TYPE, CLASSIC)], classic(&open_metrics)).into_response()
    }
}

/// Prometheus names it first; who does not name it gets what everybody reads.
fn accepts_open_metrics(asked: &HeaderMap) -> bool {
    let accepted = asked.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted.flat_map(|value| value.split(','));
    kinds.any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == OPEN_METRICS_KIND))
}

const OPEN_METRICS_KIND: &str = "application/openmetrics-text";

/// The older text for what a registry printed.
fn classic(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            help = Some(said);
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|said| said.split_once(' '))
        {
            let ending = if kind == "counter" { "_total" } else { "" };
            if let Some((_, words)) = help.take().and_then(|help| help.split_once(' ')) {
                text.push_str(&format!("# HELP {name}{ending} {words}\n"));
            }
            text.push_str(&format!("# TYPE {name}{ending} {kind}\n"));
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests;
