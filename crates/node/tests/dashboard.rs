//! The dashboard of real validators: its files, and the events that it listens to.

use crate::common::{self, Cluster, TIMEOUT, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A stream of events, read without a library.
struct Events(BufReader<TcpStream>);

impl Events {
    fn of(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        write!(stream, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut events = Self(BufReader::new(stream));
        let head: Vec<String> =
            std::iter::from_fn(|| events.line()).take_while(|line| !line.is_empty()).collect();
        assert!(
            head[0].contains("200") && head.iter().any(|line| line.ends_with("text/event-stream")),
            "{head:?}"
        );
        events
    }

    /// The next line; `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = match self.0.read_line(&mut line) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("nothing came: {error}"),
            read => read.unwrap_or(0),
        };
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Data of the next event of this name.
    fn next(&mut self, name: &str) -> Option<Value> {
        let wanted = format!("event: {name}");
        while self.line()? != wanted {}
        let data = self.line()?;
        Some(serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap())
    }
}

fn moment_where(events: &mut Events, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let mut moments = std::iter::from_fn(|| events.next("moment"));
    moments.find(is_wanted).expect("a stream that goes on")
}

fn alerts(moment: &Value) -> BTreeMap<&str, &str> {
    let all = moment["alerts"].as_array().unwrap().iter();
    all.map(|alert| (alert["name"].as_str().unwrap(), alert["level"].as_str().unwrap())).collect()
}

#[test]
fn its_files_are_served_and_run_nothing_of_others() {
    let cluster = Cluster::start(1);
    let address = cluster.validators[0].http_address();
    assert_eq!(cluster.validators[0].dashboard(), format!("http://{address}/"));
    for (path, kind) in [
        ("/", "text/html"),
        ("/base.css", "text/css"),
        ("/dashboard.css", "text/css"),
        ("/base.js", "text/javascript"),
        ("/charts.js", "text/javascript"),
        ("/panels.js", "text/javascript"),
        ("/dashboard.js", "text/javascript"),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200") && head.contains(&format!("content-type: {kind}")),
            "{head}"
        );
        assert!(
            head.contains("content-security-policy: default-src 'none'; script-src 'self'"),
            "{head}"
        );
        assert!(
            !body.contains("http://") || body.contains("http://www.w3.org/"),
            "{path} names another place"
        );
    }
    cluster.stop();
}

#[test]
fn its_events_tell_what_a_validator_sees_until_it_stops() {
    let mut cluster = Cluster::start(4);
    common::expect_progress(&cluster, 10);
    let mut events = Events::of(cluster.validators[0].http_address());
    let history = events.next("history").unwrap();
    assert_eq!(history["version"], 1);

    let well = moment_where(&mut events, |moment| {
        moment["progress"]["operations"] == 10 && moment["progress"]["heard"] == 4
    });
    assert_eq!((&well["version"], &well["validator"]["id"]), (&1.into(), &0.into()));
    assert_eq!(well["network"]["protocol"], "jolteon");
    assert_eq!(well["members"].as_array().unwrap().len(), 4);
    for (index, member) in well["members"].as_array().unwrap().iter().enumerate() {
        let address = cluster.committee.address(quorate_types::ReplicaId(index as u16));
        assert_eq!(member["address"].as_str(), address);
        assert_eq!(member["connected"].is_null(), index == 0, "no contact with itself");
    }
    let with_point = moment_where(&mut events, |moment| !moment["point"].is_null());
    let history = Events::of(cluster.validators[0].http_address()).next("history").unwrap();
    let names: Vec<&str> =
        history["fields"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let point = with_point["point"].as_object().unwrap();
    assert_eq!(names, point.keys().collect::<Vec<_>>(), "whoever comes later is told the same");
    assert!(!history["points"].as_array().unwrap().is_empty());

    cluster.stop_one(3);
    let alone = moment_where(&mut events, |moment| alerts(moment).contains_key("silent-r3"));
    assert_eq!(alerts(&alone).get("quorum-at-risk"), Some(&"warning"), "{alone}");
    assert_eq!(alone["members"][3]["silent"], true);
    cluster.stop_one(2);
    let stuck = moment_where(&mut events, |moment| alerts(moment).contains_key("no-quorum"));
    assert_eq!(
        (&stuck["alerts"][0]["level"], &stuck["validator"]["ready"]),
        (&"critical".into(), &false.into())
    );
    cluster.start_one(2);
    cluster.start_one(3);
    moment_where(&mut events, |moment| {
        alerts(moment).keys().all(|name| !name.starts_with("silent") && *name != "no-quorum")
    });

    cluster.stop();
    wait_until("the stream ends", || events.line().is_none());
}
