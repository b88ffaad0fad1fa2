//! Faults of validators and links, one member at a time.

use super::common::{Net, wait_for};
use super::links::Links;
use quorate_deterministic::Rng;
use std::collections::BTreeSet;
use std::thread::sleep;

/// Kind of a member's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL, and a new start on the same disk.
    Kill,
    /// SIGSTOP, and SIGCONT after a while.
    Pause,
    /// No link to or from the other members; clients reach it.
    Isolate,
    /// No link from it to the other members: it hears and is not heard.
    Mute,
    /// No link between it and the next member; the others reach both.
    Part,
}

pub(crate) const FAULTS: [Fault; 5] =
    [Fault::Kill, Fault::Pause, Fault::Isolate, Fault::Mute, Fault::Part];

/// Number of strikes of each kind: once whoever leads, once anybody.
const ROUNDS: usize = 2;

/// Every kind of fault against the leader, then every kind against anybody, in an order that the
/// seed gives. The next waits until the last one's victim is well again.
pub(crate) fn strike(net: &mut Net, links: &Links, seed: u64) -> Vec<(Fault, usize)> {
    let mut rng = Rng::new(seed, "nemesis", 0);
    let mut struck = Vec::new();
    for round in 0..ROUNDS {
        for fault in shuffled(&mut rng) {
            let anybody = rng.index(net.http.len());
            let victim = if round == 0 { leader(net) } else { anybody };
            begin(net, links, fault, victim);
            sleep(rng.span(&(700_000..=1_800_000)));
            end(net, links, fault, victim);
            wait_well(net, victim);
            sleep(rng.span(&(200_000..=600_000)));
            struck.push((fault, victim));
        }
    }
    struck
}

fn shuffled(rng: &mut Rng) -> Vec<Fault> {
    let mut left = FAULTS.to_vec();
    FAULTS.iter().map(|_| left.remove(rng.index(left.len()))).collect()
}

fn begin(net: &mut Net, links: &Links, fault: Fault, victim: usize) {
    match fault {
        Fault::Kill => net.processes.kill(victim).expect("killed"),
        Fault::Pause => net.processes.pause(victim).expect("paused"),
        Fault::Isolate => links.set(false, |from, to| from == victim || to == victim),
        Fault::Mute => links.set(false, |from, _| from == victim),
        Fault::Part => {
            let pair = BTreeSet::from([victim, (victim + 1) % net.http.len()]);
            links.set(false, |from, to| pair.contains(&from) && pair.contains(&to));
        }
    }
}

fn end(net: &mut Net, links: &Links, fault: Fault, victim: usize) {
    match fault {
        Fault::Kill => net.processes.start_one(victim).expect("started again"),
        Fault::Pause => net.processes.resume(victim).expect("resumed"),
        Fault::Isolate | Fault::Mute | Fault::Part => links.set(true, |_, _| true),
    }
}

fn leader(net: &Net) -> usize {
    let leader = || net.looks().into_iter().flatten().map(|look| look.leader).next();
    usize::from(wait_for("a validator that says who leads", leader))
}

/// Waits until the victim has all its connections and has executed what anybody had when it came
/// back.
fn wait_well(net: &Net, victim: usize) {
    let goal = net.looks().into_iter().flatten().map(|look| look.executed).max();
    let goal = goal.expect("a validator that answers");
    wait_for("the victim to be well", || {
        let looks: Option<Vec<_>> = net.looks().into_iter().collect();
        let looks = looks?;
        let others = looks.len() as u64 - 1;
        let connected = looks.iter().all(|look| look.peers_connected == others);
        (connected && looks[victim].executed >= goal).then_some(())
    });
}
