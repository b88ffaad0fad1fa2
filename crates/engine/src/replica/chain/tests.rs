use crate::message::Chain;
use crate::testing::net::{ALL, Net};
use crate::testing::receive;
use crate::{Comparison, Message, Settings, Truncation};
use bytes::Bytes;
use quorate_types::{BlockId, Peer, Rejected, ReplicaId};

fn settings(truncation: Truncation) -> Settings {
    let inline_bodies = truncation != Truncation::Ids;
    let comparison = Comparison { truncation, ..Comparison::default() };
    Settings { inline_bodies, comparison, ..Settings::default() }
}

fn is_question(message: &Message) -> bool {
    matches!(
        message,
        Message::FetchBlocks(_) | Message::FetchBodies(_) | Message::FetchSnapshots(_)
    )
}

/// Serves while one member hears nothing, then with it, every question of its lost.
fn rejoin(truncation: Truncation) -> Net {
    let mut net = Net::new(&settings(truncation), |from, to, _| from == 3 || to == 3);
    net.serve(12, &[0, 1, 2]);
    net.lost = |_, _, message| is_question(message);
    net
}

#[test]
fn who_was_away_is_brought_along_by_the_chain_alone() {
    for truncation in [Truncation::Heights, Truncation::Off] {
        let mut net = rejoin(truncation);
        net.serve_from(12, 12, &ALL);
        let views = net.statuses().iter().map(|status| status.executed.0).collect::<Vec<_>>();
        assert!(views.iter().all(|executed| *executed > 0), "{views:?}");
    }
}

/// The same with ids: whoever may not ask stays behind.
#[test]
fn ids_need_questions() {
    let mut net = rejoin(Truncation::Ids);
    net.serve_from(12, 12, &[0, 1, 2]);
    assert!(!net.is_done(&ALL));
}

fn chains(net: &Net) -> Vec<usize> {
    let records = |message: &Message| match message {
        Message::Chain(chain) => Some(chain.blocks.iter().map(|run| run.decided.len()).sum()),
        _ => None,
    };
    net.sent.iter().filter_map(|(_, _, message)| records(message)).collect()
}

/// Of a chain that is cut only what somebody may lack travels; one that is not grows with the
/// history.
#[test]
fn what_everybody_has_is_cut_off() {
    let mut whole = Net::new(&settings(Truncation::Off), |_, _, _| false);
    whole.serve(24, &ALL);
    let mut cut = Net::new(&settings(Truncation::Heights), |_, _, _| false);
    cut.serve(24, &ALL);
    let (whole, cut) = (chains(&whole), chains(&cut));
    let most = |chains: &[usize]| chains.iter().copied().max().unwrap_or(0);
    assert!(whole.len() > 2 * cut.len(), "votes carry it too: {} {}", whole.len(), cut.len());
    assert!(most(&whole) >= 10, "{}", most(&whole));
    assert!(most(&cut) <= 8, "{}", most(&cut));
    let mut ids = Net::new(&settings(Truncation::Ids), |_, _, _| false);
    ids.serve(24, &ALL);
    assert!(chains(&ids).is_empty());
}

/// Chains with decided blocks and with undecided ones, as some member sent them, no two to one
/// block.
fn both_kinds() -> [Chain; 2] {
    let mut net = Net::new(&settings(Truncation::Off), |_, _, _| false);
    net.serve(24, &ALL);
    let mut sent = net.sent.into_iter().filter_map(|(_, _, message)| match message {
        Message::Chain(chain) if chain.blocks.len() == 2 => Some(chain),
        _ => None,
    });
    let one = sent.next().expect("some message rests on an undecided block");
    let other = sent.find(|other| other.certificate != one.certificate);
    [one, other.expect("and so does a later one")]
}

fn refusal(chain: Chain) -> Option<Rejected> {
    receive(&Message::Chain(chain), Peer::Replica(ReplicaId(1))).err()
}

/// ★ Nobody asked for these blocks: those that are decided by nothing are taken in below a
/// certified one alone. Their links are hashes, so it proves them all.
#[test]
fn undecided_blocks_come_below_a_certified_one() {
    let [sound, other] = both_kinds();
    assert_eq!(refusal(sound.clone()), None);
    let nothing = Chain { certificate: Bytes::new(), ..sound.clone() };
    assert!(matches!(refusal(nothing), Some(Rejected::Malformed(_))));
    let anothers = Chain { certificate: other.certificate, ..sound };
    let reason = "a chain leads to a certified block";
    assert_eq!(refusal(anothers), Some(Rejected::RuleBroken(reason)));
}

#[test]
fn uncertified_blocks_are_missed() {
    use quorate_crypto::mutants::{self, Mutant};
    mutants::assert_noticed(Mutant::PlantUncertified, undecided_blocks_come_below_a_certified_one);
}

/// A decided run follows what its asker says: a sender that did could make it look like a fork.
#[test]
fn decided_blocks_of_a_chain_follow_nothing() {
    let [mut chain, _] = both_kinds();
    let run = &mut chain.blocks[0];
    assert!(!run.decided.is_empty() && run.request.after.is_none());
    run.request.height = run.kept.oldest;
    run.request.after = Some(BlockId::default());
    let reason = "a chain's decided blocks follow nothing";
    assert_eq!(refusal(chain), Some(Rejected::RuleBroken(reason)));
}
