use crate::testing::net::{ALL, Net};
use crate::{Message, Settings, Truncation};

fn settings(truncation: Truncation) -> Settings {
    let inline_bodies = truncation != Truncation::Ids;
    Settings { truncation, inline_bodies, ..Settings::default() }
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

/// Of a chain that is cut only what somebody may lack travels; one that is not grows with the history.
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
