//! A wallet and its copy that lock a coin between them, with a committee that orders releases: all
//! of it in real processes.

use super::*;

/// Anne's wallet of 100 and a copy of it, of which each was heard by two authorities, and the first
/// was told that it lost.
fn split(authorities: &str, ports: u16) -> Place {
    let mut place = Place::with(100, &["-n", authorities, "--committee"], ports);
    place.of("anne", &["genesis"]);
    place.copy_anne();
    let bob = place.address("bob");
    for (wallet, range, value) in [("anne", 0..2, "60"), ("copy", 2..4, "70")] {
        place.authorities.clear();
        place.start(range);
        let shown = place.path(wallet).join("wallet");
        let before = fs::metadata(&shown).expect("there").len();
        let send = ["pay", "send", "--to", &bob, "--value", value, "--key", "order", "-w"];
        let mut sending = Process::start(&[&send[..], &[&place.text(wallet)]].concat());
        wait_for("the payment to be stored", || {
            (fs::metadata(&shown).expect("there").len() > before).then_some(())
        });
        wait_for("two authorities to be locked", || (place.locked() == 2).then_some(()));
        sending.0.kill().expect("killed");
        sending.0.wait().expect("gone");
    }
    place.start(0..2);
    place
}

impl Place {
    /// Inputs that are locked at the authorities that answer, all together.
    fn locked(&self) -> u64 {
        (0..self.configs.len()).filter_map(|authority| self.locked_at(authority)).sum()
    }

    /// Sends Anne's payment again until it is known that it lost; what that command says.
    fn lose(&self) -> String {
        wait_for("the payment to lose", || {
            let (code, words) = self.refused("anne", &["retry", "--timeout", "3"]);
            assert_eq!(code, Some(1), "{words}");
            (!words.contains("not known yet")).then_some(words)
        })
    }
}

#[test]
fn a_coin_that_a_copy_split_comes_back_and_is_spent() {
    let mut place = split("5", 20);
    // One authority is down: it may be locked for either, and nothing is decided before it reports.
    let words = place.lose();
    assert!(words.contains("quorate pay release"), "{words}");
    assert_eq!(place.of("anne", &["balance"])["free"], 0);

    place.start(4..5);
    let released = place.of("anne", &["release", "--all", "--timeout", "120"]);
    let coin = &released["released"][0];
    assert_eq!((&coin["end"], &coin["value"]), (&"refund".into(), &100.into()), "{released}");
    assert_eq!(released["balance"]["free"], 100, "{released}");
    let history = place.of("anne", &["history"]);
    let states: Vec<_> =
        history.as_array().expect("lines").iter().map(|line| &line["state"]).collect();
    assert_eq!(states, ["certified", "refunded", "certified"]);
    let (code, words) = place.refused("anne", &["release", "--all", "--timeout", "60"]);
    assert_eq!(code, Some(0), "nothing is left to do: {words}");

    // What the copy began is over, and what came back is spent as any coin.
    let (code, words) = place.refused("copy", &["retry", "--timeout", "60"]);
    assert!(code == Some(1) && !words.contains("not known yet"), "{words}");
    let bob = place.address("bob");
    let receipt = place.text("paid.json");
    place.of("anne", &["send", "--to", &bob, "--value", "100", "--receipt", &receipt]);
    assert_eq!(place.of("bob", &["receive", &receipt])["added"], 100);
}

#[test]
fn a_coin_that_four_authorities_are_split_over_evenly_stays_locked_and_that_is_said() {
    let place = split("4", 16);
    let words = place.lose();
    assert!(words.contains("is a double spend"), "{words}");
    let output =
        quorate(&["pay", "release", "--all", "-w", &place.text("anne"), "--timeout", "60"]);
    let (code, said, words) = (output.status.code(), stdout(&output), stderr(&output));
    assert_eq!(code, Some(1), "{said}{words}");
    assert!(
        said.contains("100 in coin") && said.contains("it would stay locked for ever"),
        "{said}"
    );
    assert!(words.contains("nothing tells which"), "{words}");
    let balance = place.of("anne", &["balance"]);
    assert_eq!((&balance["frozen"], &balance["releasing"]), (&100.into(), &0.into()), "{balance}");
    let none = place.text("none.toml");
    let (code, words) = place.refused("anne", &["release", "--all", "--committee", &none]);
    assert!(code == Some(2) && words.contains("no committee file"), "{words}");
}
