use super::Crowd;
use std::io::Read;
use std::net::{TcpListener, TcpStream};

fn door() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

fn address(door: &TcpListener) -> String {
    door.local_addr().expect("bound").to_string()
}

fn accept(door: &TcpListener) -> TcpStream {
    door.accept().expect("somebody came").0
}

fn read(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).expect("it is held");
    bytes
}

#[test]
fn a_crowd_says_little_and_never_ends() {
    let door = door();
    let mut crowd = Crowd::default();
    crowd.gather(&address(&door), 2, b"half").expect("an address");
    let mut guests = [accept(&door), accept(&door)];
    crowd.trickle();
    for guest in &mut guests {
        assert_eq!(read(guest, 5), b"halfx");
    }
    drop(crowd);
    for guest in &mut guests {
        assert_eq!(guest.read(&mut [0]).expect("closed in order"), 0);
    }
}

#[test]
fn who_is_shut_out_comes_again() {
    let door = door();
    let mut crowd = Crowd::default();
    crowd.gather(&address(&door), 3, b"").expect("an address");
    let kept = accept(&door);
    let shut_out = [accept(&door), accept(&door)];
    drop(shut_out);
    let outside = |crowd: &Crowd| crowd.0.iter().filter(|guest| guest.is_shut_out()).count();
    while outside(&crowd) < 2 {
        std::thread::yield_now();
    }
    crowd.come_again(1);
    let again = accept(&door);
    assert_eq!(outside(&crowd), 1, "one of two came again, and the one that was kept stayed");
    drop((kept, again));
}
