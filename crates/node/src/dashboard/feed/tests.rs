use super::*;

fn figures(second: u64) -> Map<String, Value> {
    let Value::Object(figures) = json!({ "at_ms": second, "rate": 0.5, "p50": null }) else {
        unreachable!("an object");
    };
    figures
}

fn second(feed: &Feed, second: u64) {
    feed.publish(Some(&figures(second)), || format!("{{\"second\":{second}}}"));
}

/// Name and data of the next event that waits.
fn next(events: &mut Receiver<Bytes>) -> Option<(String, Value)> {
    let event = events.try_recv().ok()?;
    let text = std::str::from_utf8(&event).expect("text");
    let lines = text.strip_prefix("event: ")?.strip_suffix("\n\n")?;
    let (name, data) = lines.split_once("\ndata: ")?;
    Some((name.to_owned(), serde_json::from_str(data).expect("JSON in one line")))
}

#[test]
fn who_comes_later_is_told_the_past_and_then_every_second() {
    let feed = Feed::default();
    for at in 0..3 {
        feed.publish(Some(&figures(at)), || unreachable!("made, though nobody listens"));
    }
    let mut events = feed.listen().expect("a place");
    second(&feed, 3);
    let (name, history) = next(&mut events).expect("the past");
    assert_eq!((name.as_str(), &history["version"]), ("history", &json!(VERSION)));
    let place = |name: &str| {
        let fields = history["fields"].as_array().expect("names");
        fields.iter().position(|field| field == name).expect("a known name")
    };
    let points = history["points"].as_array().expect("rows");
    let times: Vec<_> = points.iter().map(|row| row[place("at_ms")].clone()).collect();
    assert_eq!(times, [0, 1, 2]);
    assert_eq!((&points[0][place("rate")], &points[0][place("p50")]), (&json!(0.5), &Value::Null));
    assert_eq!(next(&mut events), Some(("moment".to_owned(), json!({ "second": 3 }))));
    assert_eq!(next(&mut events), None);
}

#[test]
fn an_event_is_made_once_for_all_and_so_is_the_past() {
    let feed = Feed::default();
    second(&feed, 0);
    let mut all: Vec<_> = (0..3).map(|_| feed.listen().expect("a place")).collect();
    let mut made = 0;
    feed.publish(None, || {
        made += 1;
        "{}".to_owned()
    });
    assert_eq!(made, 1);
    for _ in ["the past", "the moment"] {
        let shared: Vec<_> = all.iter_mut().map(|one| one.try_recv().expect("one")).collect();
        assert!(shared.iter().all(|event| event.as_ptr() == shared[0].as_ptr()), "one in memory");
    }
}

#[test]
fn ten_minutes_are_kept_and_no_more() {
    let feed = Feed::default();
    let all = PAST_MAX as u64 + 50;
    (0..all).for_each(|at| second(&feed, at));
    let (_, history) = next(&mut feed.listen().expect("a place")).expect("the past");
    let points = history["points"].as_array().expect("rows");
    assert_eq!(points.len(), PAST_MAX);
    assert_eq!(points[0][0], 50, "the oldest are gone");
    assert!(feed.0.lock().past.len() <= PAST_MAX);
}

#[test]
fn so_many_listen_and_who_leaves_makes_room() {
    let feed = Feed::default();
    let mut all: Vec<_> = (0..LISTENERS_MAX).map(|_| feed.listen().expect("a place")).collect();
    assert_eq!(feed.listen().err(), Some(NotHeard::Full));
    let refused = feed.answer();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "10");
    drop(all.pop());
    assert_eq!(feed.answer().headers()[header::CONTENT_TYPE], "text/event-stream");
}

#[test]
fn who_does_not_read_is_dropped_and_the_others_are_not() {
    let feed = Feed::default();
    let (mut slow, mut quick) = (feed.listen().expect("a place"), feed.listen().expect("a place"));
    for at in 0..2 * WAITING_MAX as u64 {
        second(&feed, at);
        while next(&mut quick).is_some() {}
    }
    let listeners = feed.0.lock().listeners.len();
    assert_eq!(listeners, 1, "its place is free");
    let mut waiting = 0;
    while next(&mut slow).is_some() {
        waiting += 1;
    }
    assert_eq!(waiting, WAITING_MAX, "no more than so many waited for it");
    assert!(slow.is_closed() && !quick.is_closed());
}

#[test]
fn who_has_listened_for_long_asks_again() {
    let feed = Feed::default();
    let mut events = feed.listen().expect("a place");
    feed.0.lock().listeners[0].until = Instant::now();
    second(&feed, 0);
    assert_eq!(next(&mut events).map(|(name, _)| name), Some("history".to_owned()));
    assert!(events.is_closed());
    assert!(feed.listen().is_ok());
}

#[tokio::test]
async fn a_validator_that_stops_ends_its_streams() {
    let feed = Feed::default();
    let mut body = Body::new(EventBody(feed.listen().expect("a place")));
    feed.comment();
    feed.end();
    for begin in ["event: history\n", ": alive\n\n"] {
        let frame = frame(&mut body).await.expect("an event");
        assert!(frame.starts_with(begin.as_bytes()), "{frame:?}");
    }
    assert_eq!(frame(&mut body).await, None, "the end");
    assert_eq!(feed.listen().err(), Some(NotHeard::Ended));
    assert_eq!(feed.answer().status(), StatusCode::SERVICE_UNAVAILABLE);
}

async fn frame(body: &mut Body) -> Option<Bytes> {
    let next = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
    next.map(|frame| frame.expect("no error").into_data().expect("data"))
}
