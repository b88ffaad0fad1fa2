//! Authorities that change at the end of an epoch, by their operators' hands.

use super::*;
use std::process::Output;
use std::time::{Duration, SystemTime};

impl Place {
    pub(super) fn network(&self) -> String {
        self.path("net").join("network.toml").display().to_string()
    }

    /// A command of `pay change` that must succeed.
    pub(super) fn change(&self, arguments: &[&str]) -> String {
        let output = quorate(&[&["pay", "change"], arguments].concat());
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    }

    /// A wallet that slept for longer than keys are trusted is told where to turn.
    fn refuse_to_follow_from_long_ago(&self) {
        let asleep = self.path("asleep");
        fs::create_dir(&asleep).expect("made");
        let own = asleep.join("network.toml");
        fs::copy(self.network(), &own).expect("copied");
        let old = SystemTime::now() - Duration::from_secs(200 * 24 * 60 * 60);
        let file = fs::File::options().append(true).open(&own).expect("opened");
        file.set_modified(old).expect("dated");
        let wallet = asleep.join("wallet").display().to_string();
        json(&["pay", "keys", &wallet, "--json"]);
        let restored = quorate(&["pay", "restore", "-w", &wallet, "--timeout", "60"]);
        assert_eq!(restored.status.code(), Some(1), "{}", stderr(&restored));
        assert!(stderr(&restored).contains("network.epoch-2.toml"), "{}", stderr(&restored));
        assert!(!asleep.join("network.epoch-2.toml").exists(), "nobody of then is believed");
    }

    fn signed_change(&self, replaced: usize, newcomer: &Path) -> String {
        let (change, entry) = (self.text("next.toml"), self.text("entry.toml"));
        let key = newcomer.display().to_string();
        let file = fs::read_to_string(self.network()).expect("read");
        let file: toml::Table = toml::from_str(&file).expect("a table");
        let address = file["authorities"][replaced]["addresses"][0].as_str().expect("an address");
        let printed = self.change(&["entry", "--key", &key, "--address", address]);
        fs::write(&entry, printed).expect("written");
        let network = self.network();
        let replace = format!("{replaced}={entry}");
        self.change(&["draft", &change, "--network", &network, "--replace", &replace]);
        let unsigned = quorate(&["pay", "change", "show", &change, "--network", &network]);
        assert_eq!(unsigned.status.code(), Some(1), "{}", stdout(&unsigned));
        for authority in (0..4).filter(|one| *one != replaced) {
            let key = self.path(&format!("net/authority-{authority}/key.toml"));
            let key = key.display().to_string();
            self.change(&["sign", &change, "--network", &network, "--key", &key]);
        }
        self.change(&["sign", &change, "--network", &network, "--key", &key]);
        let words = self.change(&["show", &change, "--network", &network]);
        assert!(words.contains("Enough have signed"), "{words}");
        change
    }

    /// Has disk and key of the last authority lost, which was stopped, and draws up a change by
    /// which it gets new ones.
    pub(super) fn replace_last(&self) -> String {
        let lost = self.path("net/authority-3");
        fs::remove_dir_all(lost.join("data-0")).expect("its disk is lost");
        fs::remove_file(lost.join("key.toml")).expect("and its key");
        let key = lost.join("key.toml").display().to_string();
        let made = quorate(&["keys", "generate", &key]);
        assert!(made.status.success(), "{}", stderr(&made));
        self.signed_change(3, &lost.join("key.toml"))
    }

    /// The same, and closes the others: all were stopped. The change, and the reports.
    pub(super) fn lose_last(&self) -> (String, Vec<String>) {
        let change = self.replace_last();
        let mut reports = Vec::new();
        for config in &self.configs[..3] {
            let closed = json(&["pay", "change", "close", &change, "--config", config, "--json"]);
            reports.push(closed["report"].as_str().expect("a folder").to_owned());
        }
        (change, reports)
    }

    /// Has everybody begin the second epoch, and puts the change beside their network file.
    pub(super) fn begin_all(&self, change: &str, reports: &[String]) {
        for config in &self.configs {
            let begun = begin(config, change, reports);
            assert!(begun.status.success(), "{}", stderr(&begun));
            let begun: Value = serde_json::from_str(&stdout(&begun)).expect("JSON");
            assert_eq!(begun["epoch"], 2, "{begun}");
            assert_eq!(begun["contested"], 0, "{begun}");
        }
        fs::copy(change, self.path("net").join("network.epoch-2.toml")).expect("copied");
    }
}

fn begin(config: &str, change: &str, reports: &[String]) -> Output {
    let reports: Vec<&str> = reports.iter().map(String::as_str).collect();
    let begin = ["pay", "change", "begin", change, "--config", config, "--json"];
    quorate(&[&begin[..], &reports].concat())
}

/// ★ One authority's disk and key are gone, and a payment is under way. Wallets hear of the change
/// from authorities alone, and what counts of the epoch before.
#[test]
fn a_lost_authority_is_replaced_and_wallets_follow() {
    let mut place = Place::new(1_000);
    place.start(0..4);
    place.of("anne", &["genesis"]);
    let bob = place.address("bob");
    let receipt = place.text("receipt.json");
    let send = ["send", "--to", &bob, "--value", "100", "--receipt", &receipt];
    assert_eq!(place.of("anne", &send)["state"], "certified");
    assert_eq!(place.of("bob", &["receive", &receipt])["added"], 100);
    let late = place.text("late.json");
    let send = ["send", "--to", &bob, "--value", "50", "--receipt", &late];
    assert_eq!(place.of("anne", &send)["state"], "certified");
    place.authorities.truncate(2);
    let payment = ["pay", "send", "--to", &bob, "--value", "300", "--key", "two", "--timeout", "2"];
    let under_way = quorate(&[&payment[..], &["-w", &place.text("anne")]].concat());
    assert_eq!(under_way.status.code(), Some(1), "{}", stderr(&under_way));
    place.authorities.clear();

    let (change, reports) = place.lose_last();
    let too_few = begin(&place.configs[0], &change, &reports[..2]);
    assert_eq!(too_few.status.code(), Some(2), "{}", stderr(&too_few));
    assert!(stderr(&too_few).contains("collect more"), "{}", stderr(&too_few));
    place.begin_all(&change, &reports);
    place.start(0..4);

    let again = ["send", "--to", &bob, "--value", "300", "--key", "two"];
    assert_eq!(place.of("anne", &again)["state"], "certified", "the same payment, finished");
    assert_eq!(place.free("anne"), 550);
    assert!(place.path("network.epoch-2.toml").exists(), "the wallet has followed");
    assert_eq!(place.of("bob", &["follow"])["epoch"], 2);
    let own = place.text("network.toml");
    let verify = ["pay", "receipt", "verify", &late, "--network", &own, "--json"];
    assert_eq!(json(&verify)["ended_epoch"], 1);
    assert_eq!(place.of("bob", &["receive", &late])["added"], 50, "authorities say that it counts");
    let anne = place.address("anne");
    let back = ["send", "--to", &anne, "--value", "100", "--receipt", &receipt];
    assert_eq!(place.of("bob", &back)["state"], "certified", "a coin of the former epoch is spent");
    assert_eq!(place.of("anne", &["receive", &receipt])["added"], 100);
    place.refuse_to_follow_from_long_ago();
}
