use super::{Tracks, Watch};
use std::io::{BufRead, BufReader, Write};
use std::iter::{once, repeat};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

fn tracks(seen: Vec<(f64, u64)>) -> Tracks {
    Tracks { interval_ms: 100, seen: vec![seen] }
}

#[test]
fn rates_lie_between_looks() {
    let tracks = tracks(vec![(0.05, 5), (0.15, 15), (0.25, 35), (0.35, 35)]);
    // The edges lie half way between looks, and the first and last as near as half an interval.
    let expected = [50.0, 150.0, 100.0, 0.0].map(Some);
    assert_eq!(tracks.rates(0, 4), expected);
}

#[test]
fn nothing_is_known_of_a_long_silence_or_a_step_back() {
    let tracks = tracks(vec![(0.0, 0), (0.1, 10), (2.0, 400), (2.1, 410), (2.2, 0), (2.3, 7)]);
    let rates = tracks.rates(0, 23);
    assert_eq!(rates[0], Some(100.0));
    assert!(rates[1..20].iter().all(Option::is_none), "{rates:?}");
    assert_eq!(rates[20..], [Some(100.0), None, Some(70.0)]);
}

#[test]
fn an_unwatched_validator_has_no_rates() {
    assert_eq!(tracks(Vec::new()).rates(0, 3), [None; 3]);
    assert_eq!(Tracks::default().rates(7, 2), [None; 2]);
    assert_eq!(tracks(vec![(0.0, 1)]).rates(0, 0), []);
}

#[test]
fn a_validator_that_answers_is_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let (answered, answers_seen) = mpsc::channel();
    thread::spawn(move || {
        let mut operations = 0;
        // The first connection ends after one answer, as at a restart.
        'connections: for (stream, answers) in
            listener.incoming().zip(once(1).chain(repeat(u32::MAX)))
        {
            let mut stream = BufReader::new(stream.expect("a connection"));
            for _ in 0..answers {
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    if stream.read_line(&mut line).unwrap_or(0) == 0 {
                        continue 'connections;
                    }
                }
                operations += 10;
                let body = format!(r#"{{"operations": {operations}, "root": "aa"}}"#);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                let answer = format!("{head}{body}");
                let is_written = stream.get_mut().write_all(answer.as_bytes()).is_ok();
                if !is_written || answered.send(()).is_err() {
                    break;
                }
            }
        }
    });
    let watch = Watch::start(&[address], Instant::now());
    assert_eq!(answers_seen.iter().take(4).count(), 4);
    let tracks = watch.finish();
    assert_eq!(tracks.interval_ms, 100);
    let operations: Vec<u64> = tracks.seen[0].iter().map(|look| look.1).collect();
    assert!(operations.len() >= 2, "the second connection is used: {operations:?}");
    assert_eq!(operations[0], 10);
    assert!(operations.windows(2).all(|pair| pair[0] < pair[1]), "{operations:?}");
}

#[test]
fn large_committees_are_asked_less_often() {
    let nobody = vec!["127.0.0.1:1".to_owned(); 40];
    let watch = Watch::start(&nobody, Instant::now());
    let tracks = watch.finish();
    assert_eq!(tracks.interval_ms, 300);
    assert_eq!(tracks.seen, vec![Vec::new(); 40]);
}
