//! What validators say when others are slow, stopped or gone: status, metrics, readiness, log.

use crate::common::{Net, quorate, stdout, wait_for};
use quorate_lab::http;
use quorate_lab::status::MemberLook;
use quorate_node::Client;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(10);

/// Lines of a validator's log that contain all these.
fn logged(net: &Net, index: usize, parts: &[&str]) -> Vec<String> {
    let log = fs::read_to_string(net.configs[index].with_file_name("validator.log"));
    let log = log.expect("a log");
    let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
    log.lines().filter(has_all).map(str::to_owned).collect()
}

/// Code and body of an answer, whatever the code.
fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("a status port");
    stream.set_read_timeout(Some(WITHIN)).expect("set");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    (code, body.to_owned())
}

fn metric(net: &Net, index: usize, name: &str) -> Option<f64> {
    let text = http::get(&net.http[index], "/metrics", WITHIN).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")))?;
    line.parse().ok()
}

fn wait_for_metric(net: &Net, index: usize, name: &str, is_wanted: fn(f64) -> bool) {
    wait_for(name, || metric(net, index, name).filter(|value| is_wanted(*value)));
}

fn member(net: &Net, at: usize, member: usize) -> Option<MemberLook> {
    net.looks()[at].as_ref()?.members.get(member).cloned()
}

/// One operation more.
fn operate(client: &Client, sequence: &mut u64) {
    let operation = format!("operation {sequence}");
    // Not taken where many wait: those are work enough.
    let _ = client.submit(0, *sequence, operation.into());
    *sequence += 1;
}

#[test]
fn a_stopped_member_is_named_by_the_others() {
    let mut net = Net::start(4, "ed25519");
    net.wait_connected();
    let others = [0, 1, 2];
    for at in others {
        wait_for("round trips", || member(&net, at, 3)?.round_trip_ms);
        wait_for("it to be ready", || (get(&net.http[at], "/readyz").0 == 200).then_some(()));
    }
    net.processes.pause(3).expect("stopped");

    let client = net.client(&[1], 0);
    let mut sequence = 0;
    wait_for("its turns to fail", || {
        operate(&client, &mut sequence);
        let failed = |at| member(&net, at, 3).is_some_and(|look| look.turns_failed > 0);
        others.into_iter().all(failed).then_some(())
    });
    for at in others {
        let look = wait_for("it to be silent", || {
            member(&net, at, 3).filter(|look| look.silent == Some(true))
        });
        assert!(look.silence_s.is_some_and(|seconds| seconds >= 5.0), "{look:?}");
        assert!(look.certificates > 0 && look.votes < look.certificates, "{look:?}");
        wait_for("a line that names it", || {
            logged(&net, at, &["a member is silent", "member=r3"]).pop()
        });
        wait_for("a line of its failed views", || {
            (!logged(&net, at, &["views were given up", "of r3 (timeout)"]).is_empty())
                .then_some(())
        });
        wait_for_metric(&net, at, "quorate_peer_silent{peer=\"r3\"}", |silent| silent == 1.0);
        let failed = "quorate_member_turns_failed_total{peer=\"r3\"}";
        wait_for_metric(&net, at, failed, |turns| turns > 0.0);
        wait_for("it to be ready with three of four", || {
            (get(&net.http[at], "/readyz").0 == 200).then_some(())
        });
    }
    let ask = ["status", "--http", &net.http[0], &net.http[1]];
    let shown = stdout(&quorate(&ask));
    let is_named = |line: &str| line.trim_start().starts_with("3 ") && line.ends_with("0, 1");
    assert!(shown.lines().any(is_named), "{shown}");

    net.processes.resume(3).expect("goes on");
    for at in others {
        wait_for("a line that it is back", || {
            logged(&net, at, &["a member is heard again", "member=r3"]).pop()
        });
    }
    wait_for("it to say that it stood still", || {
        logged(&net, 3, &["this process stood still"]).pop()
    });
}

#[test]
fn without_a_quorum_validators_live_and_are_not_ready() {
    let mut net = Net::start(4, "ed25519");
    net.wait_connected();
    let left = [0, 1];
    for at in left {
        wait_for("it to be ready", || (get(&net.http[at], "/readyz").0 == 200).then_some(()));
    }
    net.processes.kill(2).expect("killed");
    net.processes.kill(3).expect("killed");
    let said = "no quorum: heard 2 of 4, 3 needed; silent: r2, r3";
    for at in left {
        wait_for("no quorum in the log", || {
            logged(&net, at, &["no quorum: heard", "3 needed; silent:"]).pop()
        });
        let body = wait_for("it to say what it hears", || {
            let (code, body) = get(&net.http[at], "/readyz");
            (code == 503 && body.contains(said)).then_some(body)
        });
        assert!(body.contains("\"ready\":false"), "{body}");
        assert_eq!(get(&net.http[at], "/healthz").0, 200);
        for of_quorum in ["quorate_has_quorum", "quorate_ready"] {
            wait_for_metric(&net, at, of_quorum, |value| value == 0.0);
        }
    }
    wait_for("the status to show it", || {
        stdout(&quorate(&["status", "--http", &net.http[0]])).contains(said).then_some(())
    });
    let probe = |of: &str, question: &str| {
        let answer = quorate(&["status", "--http", of, "--probe", question]);
        (answer.status.code(), stdout(&answer))
    };
    assert_eq!(probe(&net.http[0], "alive"), (Some(0), format!("{}: ok\n", net.http[0])));
    let (code, text) = probe(&net.http[0], "ready");
    assert!(code == Some(1) && text.contains(said), "{code:?} {text}");
    let (code, text) = probe(&net.http[2], "alive");
    assert!(code == Some(1) && text.contains("silent: "), "{code:?} {text}");

    let client = net.client(&[1], 0);
    operate(&client, &mut 0);
    for at in left {
        wait_for("a stall in the log", || logged(&net, at, &["stalled: nothing decided"]).pop());
        wait_for("a stall in the metrics", || {
            metric(&net, at, "quorate_stalled").filter(|stalled| *stalled > 0.0)
        });
    }

    net.processes.start_one(2).expect("started");
    net.processes.start_one(3).expect("started");
    for at in left {
        wait_for("the quorum", || logged(&net, at, &["there is a quorum again"]).pop());
        wait_for("the end of the stall", || logged(&net, at, &["no longer stalled"]).pop());
    }
    for at in 0..4 {
        wait_for("it to be ready", || (get(&net.http[at], "/readyz").0 == 200).then_some(()));
    }
    net.wait_level(1);
    for at in left {
        let decided = metric(&net, at, "quorate_decision_latency_seconds_count");
        assert!(decided.is_some_and(|times| times >= 1.0), "{decided:?}");
    }
}
