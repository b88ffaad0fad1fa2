//! Leaders that hold proposals back because processors are scarce (ADR 48).

use crate::testing::net::{ALL, LATENCY, Lost, Net};
use crate::testing::signed_change;
use crate::{Message, Settings};
use quorate_consensus::ProtocolKind;
use quorate_types::{Event, Machine, Time};
use std::time::Duration;

const PACE: Duration = Duration::from_millis(20);
/// Whatever the host asks for.
const ENDLESS: Duration = Duration::from_secs(3_600);
/// The longest pause in views of a second.
const LONGEST: Duration = Duration::from_micros(31_250);
/// A view takes no longer than this without pauses.
const VIEW: Duration = Duration::from_millis(15);
/// Requests that make many heights.
const BUSY: Duration = Duration::from_millis(4);

/// Settings and losses of a committee.
type Conditions = (fn(&mut Settings), Lost);

fn net(protocol: ProtocolKind, lost: Lost) -> Net {
    let settings = Settings { protocol, leader_reputation: false, ..Settings::default() };
    Net::new(&settings, lost)
}

fn lossless() -> Lost {
    |_, _, _| false
}

fn set_pace(net: &mut Net, pace: Duration) {
    let now = net.now;
    net.members.iter_mut().for_each(|member| member.replica.handle(now, Event::Pace(pace)));
}

/// Runs for so long with a request every so often, and says when there were proposals.
fn run(net: &mut Net, span: Duration, every: Duration) -> Vec<Time> {
    let (end, mut next, mut proposed) = (net.now + span, net.now, Vec::new());
    while net.now < end {
        if net.now >= next {
            net.submit(usize::try_from(net.now.0 % 3).expect("few"), net.now.0);
            next = next + every;
        }
        let seen = net.sent.len();
        net.step();
        if net.sent[seen..].iter().any(|(_, _, message)| is_proposal(message)) {
            proposed.push(net.now);
        }
    }
    proposed
}

fn is_proposal(message: &Message) -> bool {
    matches!(message, Message::Consensus(message) if message.proposed_bodies().is_some())
}

fn gaps(proposed: &[Time]) -> Vec<Duration> {
    proposed.windows(2).map(|pair| pair[1].since(pair[0])).collect()
}

fn view_changes(net: &Net) -> u64 {
    net.statuses().iter().map(|status| status.view_changes).sum()
}

/// Once it has heights enough, each leader waits for as long as its host says, and once.
#[test]
fn a_busy_leader_proposes_after_the_pause() {
    for protocol in ProtocolKind::ALL {
        let mut net = net(protocol, lossless());
        run(&mut net, 20 * VIEW, BUSY);
        set_pace(&mut net, PACE);
        run(&mut net, 3 * PACE, BUSY);
        let gaps = gaps(&run(&mut net, 20 * PACE, BUSY));
        assert!(gaps.len() > 8, "{protocol}: {gaps:?}");
        let within = |gap: &Duration| (PACE..PACE + VIEW).contains(gap);
        assert!(gaps.iter().all(within), "{protocol}: {gaps:?}");
        assert_eq!(view_changes(&net), 0, "{protocol}");
        assert!(net.statuses().iter().all(|status| status.pace_ms == 20), "{protocol}");
        set_pace(&mut net, Duration::ZERO);
        run(&mut net, VIEW, BUSY);
        let gaps = self::gaps(&run(&mut net, 10 * VIEW, BUSY));
        assert!(gaps.iter().all(|gap| *gap < VIEW), "{protocol}, and not after that: {gaps:?}");
    }
}

/// No pause is longer than a small part of a view, whatever the host says: nobody times out, or
/// suspects a primary.
#[test]
fn an_endless_pace_costs_no_view() {
    for protocol in ProtocolKind::ALL {
        let mut net = net(protocol, lossless());
        set_pace(&mut net, ENDLESS);
        let gaps = gaps(&run(&mut net, Duration::from_secs(1), BUSY));
        let longest = gaps.iter().max().expect("proposals");
        assert!((LONGEST..LONGEST + VIEW).contains(longest), "{protocol}: {longest:?}");
        assert_eq!(view_changes(&net), 0, "{protocol}");
    }
}

/// The same load on two committees, of which one has a pace for the last part.
#[track_caller]
fn assert_pace_is_no_matter(
    protocol: ProtocolKind,
    (tune, lost): Conditions,
    load: fn(&mut Net),
    (span, every): (Duration, Duration),
) -> Net {
    let mut settings = Settings { protocol, leader_reputation: false, ..Settings::default() };
    tune(&mut settings);
    let [mut plain, mut paced] = [(), ()].map(|()| Net::new(&settings, lost));
    load(&mut plain);
    load(&mut paced);
    set_pace(&mut paced, ENDLESS);
    let proposed = run(&mut plain, span, every);
    assert!(!proposed.is_empty(), "{protocol}");
    assert_eq!(run(&mut paced, span, every), proposed, "{protocol}");
    plain
}

/// What begins after a quiet time begins at once, and so do heights that are few.
#[test]
fn few_heights_wait_for_nothing() {
    const SECOND: Duration = Duration::from_secs(1);
    for protocol in ProtocolKind::ALL {
        let usual: Conditions = (|_| (), lossless());
        let after_load = |net: &mut Net| {
            run(net, 20 * VIEW, BUSY);
            let quiet_until = net.now + 2 * SECOND;
            net.run_until(|net| net.now >= quiet_until);
        };
        assert_pace_is_no_matter(protocol, usual, after_load, (SECOND, SECOND));
        assert_pace_is_no_matter(protocol, usual, |_| (), (3 * SECOND, SECOND));
    }
}

/// A dead member's views are short, and those after a timeout are no time to wait.
#[test]
fn nobody_pauses_in_a_short_view() {
    const SPAN: Duration = Duration::from_secs(3);
    for protocol in [ProtocolKind::Jolteon, ProtocolKind::HotStuff] {
        let dead: Conditions = (|_| (), |from, to, _| from == 3 || to == 3);
        let load = |net: &mut Net| drop(run(net, SPAN, BUSY));
        let net = assert_pace_is_no_matter(protocol, dead, load, (SPAN, BUSY));
        assert!(view_changes(&net) > 0, "{protocol}");
    }
}

/// A primary has no pause where bodies wait for half of what its judges allow already.
#[test]
fn a_primary_that_is_slow_does_not_pause() {
    for protocol in [ProtocolKind::Pbft, ProtocolKind::LinearPbft, ProtocolKind::Sbft] {
        let short: Conditions = (|settings| settings.timeout_ms = 40, lossless());
        let load = |net: &mut Net| drop(run(net, 20 * VIEW, BUSY));
        assert_pace_is_no_matter(protocol, short, load, (20 * VIEW, BUSY));
    }
}

/// An epoch ends without a pause.
#[test]
fn the_end_of_an_epoch_is_urgent() {
    for protocol in ProtocolKind::ALL {
        let mut net = net(protocol, lossless());
        run(&mut net, 20 * VIEW, BUSY);
        set_pace(&mut net, ENDLESS);
        run(&mut net, 3 * LONGEST, BUSY);
        net.bring(1, &signed_change(1, 100_000));
        let ends = net.now + 3 * VIEW;
        let have_ended = |net: &Net| {
            ALL.iter().all(|member| net.members[*member].replica.changes.stop().is_some())
        };
        while net.now < ends && !have_ended(&net) {
            run(&mut net, LATENCY, BUSY);
        }
        assert!(have_ended(&net), "{protocol}: {:?}", net.statuses());
    }
}
