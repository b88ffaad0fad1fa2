use super::{ANSWER_BYTES_MAX, Connection, Door, get};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Answers one connection with these texts, one for each request, and closes it.
fn serve(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        for answer in answers {
            let mut request = [0; 1_024];
            assert!(stream.read(&mut request).expect("a request") > 0);
            // A client that refuses the answer need not wait for its end.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

fn serve_one(answer: &str) -> String {
    serve(vec![answer.to_owned()])
}

#[test]
fn only_200_has_a_body() {
    let address = serve_one("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}");
    assert_eq!(get(&address, "/", TIMEOUT).expect("a body"), "{}");
    let error = get(&serve_one("HTTP/1.1 404 Not Found\r\n\r\n"), "/", TIMEOUT);
    let error = error.expect_err("refused").to_string();
    assert_eq!(error, "it answered 'HTTP/1.1 404 Not Found'");
    let error = get(&serve_one("SSH-2.0\r\n\r\n"), "/", TIMEOUT).expect_err("refused");
    assert_eq!(error.to_string(), "the answer is not HTTP");
}

#[test]
fn a_look_has_the_body_of_every_answer() {
    let address = serve_one("HTTP/1.1 503 Service Unavailable\r\n\r\nno quorum");
    let (code, body) = Door::from(&address).look("/", TIMEOUT).expect("an answer");
    assert_eq!((code.as_u16(), body.as_str()), (503, "no quorum"));
}

#[test]
fn one_connection_carries_many_requests() {
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno",
    ];
    let address = serve(answers.map(str::to_owned).to_vec());
    let mut connection = Connection::open(&address, TIMEOUT).expect("connected");
    assert_eq!(connection.get("/a").expect("an answer"), "first");
    assert_eq!(connection.post("/b", "{}").expect("an answer"), "");
    let error = connection.get("/c").expect_err("not 200").to_string();
    assert!(error.contains("404"), "{error}");
    let error = connection.get("/d").expect_err("closed");
    assert!(!error.to_string().is_empty());
}

#[test]
fn requests_say_what_they_ask_for_and_of_whom() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let asked = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = vec![0; 1_024];
        let count = stream.read(&mut request).expect("a request");
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("written");
        String::from_utf8_lossy(&request[..count]).to_lowercase()
    });
    Connection::open(&address, TIMEOUT).expect("connected").post("/", "{}").expect("an answer");
    let asked = asked.join().expect("a request");
    assert!(asked.starts_with("post / http/1.1\r\n") && asked.ends_with("\r\n\r\n{}"), "{asked}");
    for field in
        ["content-type: application/json", "content-length: 2", &format!("host: {address}")]
    {
        assert!(asked.contains(field), "{field} in {asked}");
    }
}

#[test]
fn an_answer_without_a_length_or_an_end_is_refused() {
    for (answer, reason) in [
        ("HTTP/1.1 200 OK\r\n\r\nbody", "no length"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", "no length"),
        ("HTTP/1.1 200 OK\r\n", "within its head"),
    ] {
        let mut connection = Connection::open(&serve_one(answer), TIMEOUT).expect("connected");
        let error = connection.get("/").expect_err("no whole answer").to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_body_without_an_end_is_read_up_to_a_limit() {
    let long = "x".repeat(ANSWER_BYTES_MAX as usize + 1);
    let address = serve(vec![format!("HTTP/1.1 200 OK\r\n\r\n{long}")]);
    let error = get(&address, "/", TIMEOUT).expect_err("too long").to_string();
    assert_eq!(error, "the answer is too long");
}

#[test]
fn nobody_is_waited_for_longer_than_agreed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let error = get(&address, "/", Duration::from_millis(50)).expect_err("silence");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "no answer within 50ms");
}
