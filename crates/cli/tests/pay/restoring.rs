//! Wallets whose disk was lost, on real authorities.

use super::*;
use std::os::unix::fs::PermissionsExt;

impl Place {
    /// Starts all authorities again, each on what it has on disk.
    fn restart_all(&mut self) {
        self.authorities.clear();
        self.start(0..4);
    }

    /// Number of proofs of double spends at all authorities.
    fn evidence(&self) -> usize {
        let shown = |authority| {
            let (status, proofs) = ask(&self.door(authority), "GET", "/evidence", "", "");
            assert_eq!(status, 200);
            proofs.as_array().expect("proofs").len()
        };
        (0..self.configs.len()).map(shown).sum()
    }

    fn restored(&self, arguments: &[&str]) -> Value {
        self.of("anne", &[&["restore", "--timeout", "60"], arguments].concat())
    }

    fn refused_keys(&self, wallet: &str) -> (Option<i32>, String) {
        let output = quorate(&["pay", "keys", &self.text(wallet), "--existing"]);
        (output.status.code(), stderr(&output))
    }

    fn key_of_anne(&self) -> Vec<u8> {
        fs::read(self.path("anne").join("key.toml")).expect("read")
    }
}

/// ★ The folder is removed while a payment is under way and half of the authorities are stopped.
#[test]
fn a_wallet_comes_back_from_its_key_in_the_middle_of_a_payment() {
    let mut place = Place::new(1_000);
    place.start(0..4);
    place.of("anne", &["genesis"]);
    let bob = place.address("bob");
    let memo = ["send", "--to", &bob, "--value", "100", "--memo", "invoice 7", "--key", "one"];
    assert_eq!(place.of("anne", &memo)["state"], "certified");
    // Three signed it, and the fourth may never hear of it.
    let holders = wait_for("a quorum to hold the first payment", || {
        let all = (0..4).filter(|authority| place.locked_at(*authority) == Some(1));
        let holders: Vec<usize> = all.collect();
        (holders.len() >= 3).then_some(holders)
    });
    let left = &holders[..2];
    let mut places = 0..;
    place.authorities.retain(|_| places.next().is_some_and(|at| left.contains(&at)));
    let send = |value: &str, key: &str| {
        let payment = ["send", "--to", &bob, "--value", value, "--key", key, "--timeout", "2"];
        let output = quorate(&[&["pay"], &payment[..], &["-w", &place.text("anne")]].concat());
        (output.status.code(), stderr(&output))
    };
    // One input of the first payment and one of this.
    let held = || left.iter().all(|authority| place.locked_at(*authority) == Some(2));
    wait_for("both to hold the payment that is under way", || {
        let (code, words) = send("300", "two");
        assert!(code == Some(1) && words.contains("not known yet"), "{words}");
        held().then_some(())
    });

    let key = place.key_of_anne();
    fs::remove_dir_all(place.path("anne")).expect("removed");
    fs::create_dir(place.path("anne")).expect("made");
    fs::write(place.path("anne").join("key.toml"), &key).expect("written");
    fs::set_permissions(place.path("anne").join("key.toml"), fs::Permissions::from_mode(0o600))
        .expect("set");
    // Two are no quorum: nothing is paid yet, and the same command goes on later.
    wait_for("both to say what they keep", || {
        let (code, words) = place.refused("anne", &["restore", "--timeout", "2"]);
        assert!(code == Some(1) && words.contains("of 4 authorities"), "{words}");
        words.contains("2 of 4 authorities").then_some(())
    });
    let (code, words) = send("1", "three");
    assert!(code == Some(1) && words.contains("pays nothing before a quorum did"), "{words}");

    place.restart_all();
    let restored = place.restored(&[]);
    assert_eq!(restored["payments"], 2, "{restored}");
    assert_eq!(restored["balance"]["free"], 600, "{restored}");
    assert_eq!(restored["balance"]["reserved"], 0, "{restored}");
    let history = place.of("anne", &["history"]);
    let lines = history.as_array().expect("lines");
    assert!(lines.iter().any(|line| line["memo"] == "invoice 7"), "{history}");
    assert!(lines.iter().all(|line| line["state"] == "certified"), "{history}");
    // The caller's name came back with it: no second payment.
    let again = ["send", "--to", &bob, "--value", "300", "--key", "two"];
    place.of("anne", &again);
    assert_eq!(place.free("anne"), 600);
    assert_eq!(place.of("anne", &["send", "--to", &bob, "--value", "600"])["state"], "certified");
    assert_eq!(place.evidence(), 0);
}

#[test]
fn an_old_backup_and_an_authority_without_records_are_enough() {
    let mut place = Place::new(1_000);
    place.start(0..4);
    place.of("anne", &["genesis"]);
    let (bob, anne) = (place.address("bob"), place.address("anne"));
    place.of("anne", &["send", "--to", &bob, "--value", "100", "--key", "before"]);
    let backup = place.text("anne.backup");
    place.of("anne", &["backup", &backup, "--with-key"]);
    place.of("anne", &["send", "--to", &bob, "--value", "200", "--key", "after"]);
    let receipt = place.text("issued.json");
    place.of("net/issuer", &["issue", "--to", &anne, "--value", "50", "--receipt", &receipt]);
    place.of("anne", &["receive", &receipt]);
    place.of("anne", &["retry"]);

    place.authorities.clear();
    let liar = Path::new(&place.configs[3]).with_file_name("data-0").join("records");
    fs::remove_dir_all(liar).expect("it kept some");
    place.start(0..4);
    fs::remove_dir_all(place.path("anne")).expect("removed");
    let restored = place.restored(&[&backup]);
    assert_eq!(
        (&restored["payments"], &restored["receipts"]),
        (&1.into(), &1.into()),
        "{restored}"
    );
    assert_eq!(place.free("anne"), 750);
    let history = place.of("anne", &["history"]);
    let keys = history.as_array().expect("lines").iter().filter_map(|line| line["key"].as_str());
    assert_eq!(keys.collect::<Vec<_>>(), ["before", "after"]);
    place.of("anne", &["send", "--to", &bob, "--value", "750"]);
    assert_eq!(place.evidence(), 0);
}

/// ★ Nothing is done with a book that is not what it was.
#[test]
fn a_book_that_was_cut_set_back_or_swapped_is_refused() {
    let mut place = Place::new(100);
    place.start(0..4);
    place.of("anne", &["genesis"]);
    let book = place.path("anne").join("wallet");
    let old = fs::read(&book).expect("read");
    let bob = place.address("bob");
    place.of("anne", &["send", "--to", &bob, "--value", "60"]);
    let whole = fs::read(&book).expect("read");
    let refused = |what: &str| {
        let (code, words) = place.refused("anne", &["balance"]);
        assert_eq!(code, Some(4), "{what}: {words}");
        assert!(words.contains("quorate pay restore"), "{what}: {words}");
    };
    fs::write(&book, &old).expect("written");
    refused("set back");
    fs::write(&book, &whole[..whole.len() - 1]).expect("written");
    refused("cut");
    let other = fs::read(place.path("bob").join("wallet")).expect("read");
    fs::write(&book, other).expect("written");
    refused("swapped");
    fs::remove_file(&book).expect("removed");
    let (code, words) = place.refused_keys("anne");
    assert!(code == Some(2) && words.contains("quorate pay restore"), "{words}");
    fs::write(&book, &old).expect("written");
    let restored = place.restored(&[]);
    assert_eq!(restored["balance"]["free"], 40, "{restored}");
    let former = restored["former"].as_str().expect("the former file stays");
    assert_eq!(fs::read(former).expect("read"), old);
    assert_eq!(place.evidence(), 0);
}
