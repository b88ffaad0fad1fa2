use super::*;
use axum::http::HeaderValue;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;

fn registry() -> Registry {
    let mut registry = Registry::with_prefix("quorate");
    let (counter, gauge) = (Counter::<u64>::default(), Gauge::<i64>::default());
    let histogram = Histogram::new([0.5]);
    counter.inc();
    histogram.observe(0.25);
    registry.register("cuts", "Connections cut", counter);
    registry.register("view", "Current view", gauge);
    registry.register_with_unit("wait", "Time that it waits", Unit::Seconds, histogram);
    registry
}

#[test]
fn the_older_text_names_counters_as_their_samples_are() {
    let expected = "\
        # HELP quorate_cuts_total Connections cut.\n\
        # TYPE quorate_cuts_total counter\n\
        quorate_cuts_total 1\n\
        # HELP quorate_view Current view.\n\
        # TYPE quorate_view gauge\n\
        quorate_view 0\n\
        # HELP quorate_wait_seconds Time that it waits.\n\
        # TYPE quorate_wait_seconds histogram\n\
        quorate_wait_seconds_sum 0.25\n\
        quorate_wait_seconds_count 1\n\
        quorate_wait_seconds_bucket{le=\"0.5\"} 1\n\
        quorate_wait_seconds_bucket{le=\"+Inf\"} 1\n";
    assert_eq!(classic(&print(&registry())), expected);
}

#[test]
fn open_metrics_is_for_those_who_ask_for_it() {
    let kind = |accept: Option<&'static str>| {
        let mut asked = HeaderMap::new();
        asked.extend(accept.map(|kind| (header::ACCEPT, HeaderValue::from_static(kind))));
        let response = answer(&asked, print(&registry()));
        response.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned()
    };
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.5,*/*;q=0.1";
    assert_eq!(kind(Some(prometheus)), OPEN_METRICS);
    for other in [None, Some("*/*"), Some("text/plain;version=0.0.4"), Some("text/html, */*")] {
        assert_eq!(kind(other), CLASSIC, "{other:?}");
    }
}
