//! Payments at a rate while authorities go, come back and change.

use super::*;
use std::fs::File;

/// A `quorate pay load` that runs, and what it says.
struct Load {
    process: Process,
    said: PathBuf,
}

impl Place {
    /// A network of four in which Anne has money, and a load that she pays for: two hundred
    /// payments.
    fn loaded() -> (Self, Load) {
        Self::new(1_000).load()
    }

    fn load(mut self) -> (Self, Load) {
        self.start(0..4);
        self.of("anne", &["genesis"]);
        let load = Load::start(&self, "10");
        load.await_line(" paid ");
        (self, load)
    }

    fn anne_has_it_all(&self) {
        assert_eq!(self.free("anne"), 1_000);
    }
}

impl Load {
    fn start(place: &Place, duration: &str) -> Self {
        let said = place.path("said");
        let (anne, folder) = (place.text("anne"), place.text("load"));
        let network = place.network();
        let load = ["pay", "load", "-w", &anne, "--folder", &folder, "--network", &network];
        let size = ["--timeout", "60", "--rate", "20", "--payers", "4", "--coins", "40"];
        let size = [&size[..], &["--duration", duration]].concat();
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let command = command.args(load).args(size);
        let file = File::create(&said).expect("made");
        let errors = file.try_clone().expect("cloned");
        let child = command.stdout(file).stderr(errors).spawn().expect("started");
        Self { process: Process(child), said }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).expect("read")
    }

    fn await_line(&self, text: &str) {
        wait_for(text, || self.said().contains(text).then_some(()));
    }

    /// Waits for the end of a load whose audit holds.
    fn end(mut self) -> String {
        let status = self.process.0.wait().expect("ended");
        let said = self.said();
        assert!(status.success(), "{said}");
        assert!(said.contains("none lost, none twice"), "{said}");
        said
    }
}

/// Two of four are no quorum, so that nothing is certified while they are away.
#[test]
fn a_load_goes_on_when_authorities_come_back() {
    let (mut place, load) = Place::loaded();
    place.authorities.truncate(2);
    load.await_line("2 of 4 authorities");
    place.start(2..4);
    let said = load.end();
    assert!(said.contains("200 of 200 payments certified"), "{said}");
    place.anne_has_it_all();
}

/// One authority's disk and key are gone, and payments are under way.
#[test]
fn a_load_goes_on_through_a_change_of_authorities() {
    let (mut place, load) = Place::loaded();
    place.authorities.clear();
    load.await_line("0 of 4 authorities");
    let (change, reports) = place.lose_last();
    place.begin_all(&change, &reports);
    place.start(0..4);
    let said = load.end();
    assert!(said.contains("200 of 200 payments certified"), "{said}");
    assert!(said.contains("epochs 1 to 2"), "{said}");
    fs::copy(change, place.path("network.epoch-2.toml")).expect("copied");
    place.anne_has_it_all();
}

/// The same, by the commands that an operator types: the committee does the rest.
#[test]
fn a_load_goes_on_through_a_change_that_the_committee_orders() {
    let (mut place, load) = Place::with(1_000, &["--committee"], 16).load();
    place.authorities.pop();
    let change = place.replace_last();
    place.start(3..4);
    let network = place.network();
    let submit = ["submit", &change, "--network", &network];
    assert!(place.change(&submit).contains("It is ordered: epoch 1 ends."));
    assert!(place.change(&submit).contains("It is ordered"), "again, and it stays so");
    let words = place.change(&["watch", &change, "--network", &network]);
    assert!(words.contains("Epoch 2 has begun"), "{words}");
    let said = load.end();
    assert!(said.contains("200 of 200 payments certified"), "{said}");
    assert!(said.contains("epochs 1 to 2"), "{said}");
    fs::copy(change, place.path("network.epoch-2.toml")).expect("copied");
    place.anne_has_it_all();
}

/// Nothing that it began is lost with it.
#[test]
fn a_load_that_is_killed_is_settled_by_the_same_folder() {
    let (mut place, mut load) = Place::loaded();
    place.authorities.truncate(2);
    load.await_line("2 of 4 authorities");
    load.process.0.kill().expect("killed");
    load.process.0.wait().expect("gone");
    place.start(2..4);
    let said = Load::start(&place, "0").end();
    assert!(said.contains("40 came in, 40 went back, 0 are left"), "{said}");
    place.anne_has_it_all();
    // Nothing is left to be settled.
    Load::start(&place, "0").end();
}
