use super::testing::{Ends, acceptor, connection_from};
use super::*;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const ONE: &str = "192.0.2.1";
const OTHER: &str = "192.0.2.2";

fn limiter(total: usize, per_address: usize) -> Arc<ConnectionLimiter> {
    ConnectionLimiter::new(ConnectionLimits { total, per_address }, Counter::default())
}

async fn enter(limiter: &Arc<ConnectionLimiter>, address: &str) -> Ends {
    connection_from(limiter, address).await.expect("let in")
}

/// Writes to a connection, which is thereby used, a while after what was used before it.
async fn use_it(ends: &mut Ends) {
    std::thread::sleep(Duration::from_millis(3));
    ends.accepted.write_all(b"answer").await.expect("written");
}

#[tokio::test]
async fn the_least_recently_used_gives_way() {
    let limiter = limiter(2, 2);
    let (mut first, mut second) = (enter(&limiter, ONE).await, enter(&limiter, ONE).await);
    use_it(&mut second).await;
    use_it(&mut first).await;
    let third = enter(&limiter, ONE).await;
    assert!(second.is_cut());
    assert!(!first.is_cut() && !third.is_cut());
    assert_eq!((limiter.count(), limiter.cut.load().get()), (2, 1));
    drop((first, third));
    assert_eq!(limiter.count(), 0);
}

#[tokio::test]
async fn who_gives_way_is_counted_where_it_is_shown_now() {
    let limiter = limiter(1, 1);
    let mut kept = vec![enter(&limiter, ONE).await, enter(&limiter, ONE).await];
    let (former, shown) = (limiter.cut.load_full(), Counter::default());
    limiter.count_with(shown.clone());
    kept.push(enter(&limiter, ONE).await);
    assert_eq!((former.get(), shown.get()), (1, 1));
}

#[tokio::test]
async fn an_address_takes_no_more_than_its_part() {
    let limiter = limiter(9, 2);
    let other = enter(&limiter, OTHER).await;
    let (first, second) = (enter(&limiter, ONE).await, enter(&limiter, ONE).await);
    let third = enter(&limiter, ONE).await;
    assert!(first.is_cut() && !other.is_cut());
    let busy = (second.handle().begin(), third.handle().begin());
    assert!(connection_from(&limiter, ONE).await.is_none(), "both of its own are busy");
    drop(busy);
    assert!(connection_from(&limiter, ONE).await.is_some());
}

#[tokio::test]
async fn the_address_with_most_gives_way_to_others_though_it_is_busy() {
    let limiter = limiter(3, 3);
    let first = enter(&limiter, ONE).await;
    let (second, third) = (enter(&limiter, ONE).await, enter(&limiter, ONE).await);
    let _busy = [&first, &second, &third].map(|ends| ends.handle().begin());
    assert!(connection_from(&limiter, ONE).await.is_none(), "nobody of its own is idle");
    let newcomer = enter(&limiter, OTHER).await;
    assert!(first.is_cut());
    let _also_busy = newcomer.handle().begin();
    assert!(connection_from(&limiter, OTHER).await.is_none(), "it would have as many");
}

#[tokio::test]
async fn this_machine_is_not_counted_by_address_and_networks_of_ipv6_are_one() {
    let limiter = limiter(3, 1);
    let local = enter(&limiter, "::1").await;
    let _second = enter(&limiter, "::1").await;
    assert!(!local.is_cut());
    let six = enter(&limiter, "2001:db8::1").await;
    let _same = enter(&limiter, "2001:db8::2").await;
    assert!(six.is_cut());
    assert_eq!(counted("::ffff:192.0.2.1".parse().expect("valid")), IpAddr::from([192, 0, 2, 1]));
}

#[tokio::test]
async fn a_connection_that_moves_on_leaves_its_place() {
    let (strangers, clients) = (limiter(1, 1), limiter(1, 1));
    let mut first = enter(&strangers, ONE).await;
    assert!(first.accepted.move_to(&clients));
    assert_eq!((strangers.count(), clients.count()), (0, 1));
    let mut second = enter(&strangers, OTHER).await;
    assert!(second.accepted.move_to(&clients));
    assert!(first.is_cut() && !second.is_cut());
    drop(first);
    assert_eq!(clients.count(), 1, "the second has its place");
}

#[tokio::test]
async fn an_acceptor_lets_newcomers_in_while_strangers_do_nothing() {
    let limiter = limiter(4, 4);
    let (acceptor, at) = acceptor(&limiter).await;
    let accepting = tokio::spawn(async move {
        loop {
            let (mut stream, _) = acceptor.accept().await;
            tokio::spawn(async move {
                let mut byte = [0];
                while stream.read_exact(&mut byte).await.is_ok() {
                    stream.write_all(&byte).await.expect("written");
                }
            });
        }
    });
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(TcpStream::connect(at).await.expect("connected"));
        let mut newcomer = TcpStream::connect(at).await.expect("connected");
        newcomer.write_all(b"?").await.expect("written");
        assert_eq!(newcomer.read_u8().await.expect("answered"), b'?');
    }
    assert!(limiter.cut.load().get() >= 90);
    accepting.abort();
}

#[tokio::test]
async fn silence_is_measured_from_the_last_answer() {
    let limiter = limiter(1, 1);
    let mut ends = enter(&limiter, ONE).await;
    let silence = Duration::from_millis(40);
    std::thread::sleep(silence);
    let began = Instant::now();
    use_it(&mut ends).await;
    ends.handle().idle_for(silence).await;
    assert!(began.elapsed() >= silence);
}
