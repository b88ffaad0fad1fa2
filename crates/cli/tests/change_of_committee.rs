//! `quorate committee`: changes of a committee, from the draft to the members of a running one.

use crate::common::{Net, edit, json, quorate, stderr, stdout, text};
use quorate_crypto::{Bitmap, KeyCache, KeyFile, Policy, hash};
use quorate_node::bring_change;
use quorate_node::config::{load_committee, read_committee_file};
use quorate_types::{
    BlockId, Change, Committee, CommitteeFile, HandOver, HandedOver, Header, Height, History,
    Purpose, ReplicaId, SignedChange, SignedHandOver,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Files of a committee of four, none of which runs.
struct Desk {
    place: TempDir,
}

impl Desk {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("net");
        let written = quorate(&["testnet", text(&folder)]);
        assert!(written.status.success(), "{}", stderr(&written));
        Self { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn net(&self) -> PathBuf {
        self.path("net")
    }

    fn genesis(&self) -> PathBuf {
        self.net().join("committee.toml")
    }

    fn key(&self, member: usize) -> PathBuf {
        key_of(&self.net(), member)
    }

    /// New keys of somebody, and the entry that `keys show` prints of them.
    fn newcomer(&self, name: &str, more: &[&str]) -> (PathBuf, PathBuf) {
        let (key, entry) = (self.path(&format!("{name}-key")), self.path(&format!("{name}.toml")));
        let made = quorate(&[&["keys", "generate", text(&key)][..], more].concat());
        assert!(made.status.success(), "{}", stderr(&made));
        fs::write(&entry, stdout(&quorate(&["keys", "show", text(&key)]))).expect("written");
        (key, entry)
    }

    /// Runs `quorate committee` with this committee in force.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        run(arguments, &["--net", text(&self.net())])
    }

    /// A change with these options.
    fn draft(&self, name: &str, options: &[&str]) -> PathBuf {
        let out = self.path(name);
        self.must(&[&["draft", "--out", text(&out)], options].concat());
        out
    }

    fn must(&self, arguments: &[&str]) -> String {
        let (code, said) = self.run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        said
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let (code, said) = self.run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        said
    }

    fn sign(&self, change: &Path, members: &[usize]) {
        sign(&self.net(), change, members);
    }

    fn accept(&self, change: &Path, members: &[usize]) {
        accept(&self.net(), change, members);
    }
}

fn key_of(net: &Path, member: usize) -> PathBuf {
    net.join(format!("validator-{member}/key.toml"))
}

fn run(arguments: &[&str], place: &[&str]) -> (Option<i32>, String) {
    let output = quorate(&[&["committee"], arguments, place].concat());
    (output.status.code(), stdout(&output) + &stderr(&output))
}

fn sign(net: &Path, change: &Path, members: &[usize]) {
    for member in members {
        let key = key_of(net, *member);
        let signed = run(&["sign", text(change), "--key", text(&key)], &["--net", text(net)]);
        assert_eq!(signed.0, Some(0), "{}", signed.1);
    }
}

fn accept(net: &Path, change: &Path, members: &[usize]) {
    for member in members {
        let key = key_of(net, *member);
        let arguments = ["accept", text(change), "--key", text(&key), "--executed", "7"];
        let accepted = run(&arguments, &["--net", text(net)]);
        assert_eq!(accepted.0, Some(0), "{}", accepted.1);
    }
}

#[test]
fn a_change_goes_from_the_draft_to_what_members_take() {
    let desk = Desk::new();
    let (third, entry) = desk.newcomer("third", &[]);
    let options = ["--replace", &format!("r2={}", text(&entry)), "--protocol", "pbft"];
    let said = desk.must(&[&["draft", "--out", text(&desk.path("change"))], &options[..]].concat());
    let [old, new] = [desk.key(2), third.clone()]
        .map(|key| json(&["keys", "show", text(&key), "--json"])["identity"].clone());
    for part in [
        format!("r2 comes: {}\n    at 127.0.0.1:7002, weight 1", new.as_str().expect("a key")),
        format!("r2 leaves: {}\n    at 127.0.0.1:7002, weight 1", old.as_str().expect("a key")),
        "protocol, setting: jolteon → pbft".to_owned(),
        "quorum              3       3".to_owned(),
        "Approved by nobody: weight 0 of 3 needed".to_owned(),
    ] {
        assert!(said.contains(&part), "{part:?} is not in {said}");
    }

    // Each operator has a copy of its own.
    let [first, second] = ["change", "copy"].map(|name| desk.path(name));
    fs::copy(&first, &second).expect("copied");
    desk.accept(&first, &[0, 1]);
    desk.must(&["accept", text(&second), "--key", text(&third), "--executed", "3"]);
    desk.sign(&first, &[0]);
    desk.sign(&second, &[2, 3]);
    let merged = desk.must(&["merge", text(&first), text(&second)]);
    assert!(merged.contains("Approved by r0, r2, r3: weight 3 of 3 needed\n"), "{merged}");
    assert!(merged.contains("Accepted by r0, r1, r2: weight 3 of 3 needed\nComplete."), "{merged}");

    let verified = desk.must(&["verify", text(&first)]);
    let net = desk.net();
    let place = ["--net", text(&net), "--json"];
    let shown = json(&[&["committee", "show", text(&first)], &place[..]].concat());
    assert_eq!(shown["signatures"]["complete"], true);
    assert_eq!(shown["change"]["expires"], Value::Null);
    assert_eq!(shown["change"]["after"]["quorum"], 3);
    let digest = shown["change"]["digest"].as_str().expect("a digest");
    assert!(verified.contains(digest), "{verified}");
}

/// All members at once, with keys that were made for them together.
#[test]
fn a_change_brings_threshold_keys_and_the_protocol_that_uses_them() {
    let desk = Desk::new();
    let dealt = desk.path("dealt");
    let options = ["--scheme", "bls-threshold", "--protocol", "sbft"];
    let made = quorate(&[&["testnet", text(&dealt)][..], &options].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    let replaced = |member: usize| {
        let entry = desk.path(&format!("dealt-{member}.toml"));
        let shown = quorate(&["keys", "show", text(&key_of(&dealt, member))]);
        fs::write(&entry, stdout(&shown)).expect("written");
        format!("--replace={member}={}", text(&entry))
    };
    let replaced: Vec<String> = (0..4).map(replaced).collect();
    let replaced: Vec<&str> = replaced.iter().map(String::as_str).collect();
    let groups = dealt.join("committee.toml");
    let change =
        desk.draft("change", &[&options[..], &replaced, &["--groups", text(&groups)]].concat());
    desk.sign(&change, &[0, 1, 2]);
    for member in 0..4 {
        let key = key_of(&dealt, member);
        desk.must(&["accept", text(&change), "--key", text(&key), "--executed", "0"]);
    }
    let said = desk.must(&["show", text(&change)]);
    assert!(said.contains("committee, scheme: ed25519 → bls-threshold\n"), "{said}");
    assert!(said.contains("committee, group key: none → "), "{said}");
    desk.must(&["verify", text(&change)]);
}

#[test]
fn a_sealed_key_signs_with_its_passphrase() {
    let desk = Desk::new();
    let passphrase = desk.path("passphrase");
    fs::write(&passphrase, "correct horse battery staple").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&passphrase, mode).expect("the owner's alone");
    let key = desk.key(1);
    let named = ["--passphrase-file", text(&passphrase)];
    let sealed = quorate(&[&["keys", "encrypt", text(&key)], &named[..]].concat());
    assert!(sealed.status.success(), "{}", stderr(&sealed));
    let change = desk.draft("change", &["--set", "leader_tenure=2"]);
    let sign = ["sign", text(&change), "--key", text(&key)];
    assert!(desk.refused(&sign).contains("a passphrase is needed"));
    desk.must(&[&sign[..], &named].concat());
    let accept = ["accept", text(&change), "--key", text(&key), "--executed", "1"];
    let said = desk.must(&[&accept[..], &named].concat());
    assert!(said.contains("Approved by r1") && said.contains("Accepted by r1"), "{said}");
}

#[test]
fn a_draft_that_breaks_a_rule_is_refused_by_its_name() {
    let desk = Desk::new();
    let (key, entry) = desk.newcomer("new", &[]);
    let (_, bls) = desk.newcomer("bls", &["--scheme", "bls"]);
    let twice = desk.path("twice.toml");
    let shown = stdout(&quorate(&["keys", "show", text(&desk.key(0))]));
    fs::write(&twice, shown.replace("host:port", "h:1")).expect("written");
    let genesis = desk.genesis();
    let (entry, bls, twice) = (text(&entry), text(&bls), text(&twice));
    let replaced = |who: &str| format!("{who}={entry}");
    let cases: &[(&[&str], &str)] = &[
        (&["--add", twice], "members 0 and 4 have the same identity key"),
        (&["--add", entry], "give --address 4=HOST:PORT"),
        (&["--add", text(&key)], "is no member's entry, as `quorate keys show` prints it"),
        (&["--replace", &format!("0={bls}")], "member 0"),
        (&["--scheme", "bls"], "member 0"),
        (&["--remove", "4"], "there is no member 4: their indices are 0 to 3"),
        (&["--remove", "abc"], "'abc' names no member: give its index"),
        (&["--remove", "0123456789abcdef"], "no member's identity key begins with"),
        (&["--remove", "1", "--weight", "r1=2"], "member 1 is removed"),
        (&["--remove", "1", "--replace", &replaced("1")], "member 1 is removed"),
        (&["--weight", "0=9"], "a quorum by itself"),
        (&["--redundancy", "1"], "no committee with redundancy 1"),
        (&["--set", "colour=green"], "there is no setting 'colour': members agree on service"),
        (&["--set", "leader_tenure=long"], "'long' is no value of its type"),
        (&["--set", "leader_tenure=0"], "leader_tenure"),
        (&["--set", "clients=nobody"], "setting 'clients': 'nobody' is none of"),
        (&["--set", "truncation=heights"], "'truncation' is for comparisons with papers"),
        (&["--set", "service=kv"], "'service' and 'genesis_digest' stay as they are"),
        (&["--protocol", "paxos"], "setting 'protocol'"),
        (&["--groups", text(&genesis)], "holds no groups' keys"),
        (&["--not-before", "9", "--expires", "3"], "may be ordered from h9 on and expires at h3"),
    ];
    for (options, sentence) in cases {
        let out = desk.path("refused");
        let said = desk.refused(&[&["draft", "--out", text(&out)], *options].concat());
        assert!(said.contains(sentence), "{options:?}: {said}");
        assert!(!out.exists(), "{options:?}");
    }
    let secret = fs::read_to_string(&key).expect("a key file");
    let secret = secret.lines().find_map(|line| line.strip_prefix("identity = ")).expect("a key");
    let said = desk.refused(&["draft", "--out", "out", "--add", text(&key)]);
    assert!(!said.contains(secret.trim_matches('"')), "{said}");
    let change = desk.draft("change", &[]);
    assert!(desk.refused(&["draft", "--out", text(&change)]).contains("cannot write"));
}

#[test]
fn members_are_named_by_index_or_by_key_and_keep_their_order() {
    let desk = Desk::new();
    let (_, entry) = desk.newcomer("new", &[]);
    let file = read_committee_file(&desk.genesis()).expect("a committee file");
    let key = &file.members[3].identity[..8];
    let change = desk.draft(
        "change",
        &[
            "--remove",
            "0",
            "--add",
            text(&entry),
            "--address",
            "4=localhost:7100",
            "--weight",
            &format!("{key}=2"),
        ],
    );
    let said = desk.must(&["show", text(&change)]);
    for part in [
        "r3 comes: ",
        "at localhost:7100, weight 1",
        "r0 leaves: ",
        "r1, index: r1 → r0",
        "r3, index: r3 → r2",
        "r3, weight: 1 → 2",
        "weight              4       5",
        "Mind: no quorum without member 2, which weighs more than what may fail (1).",
        "New, and to accept yet: r3",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn nobody_signs_for_another_network_epoch_or_member() {
    let (desk, other) = (Desk::new(), Desk::new());
    let change = desk.draft("change", &["--not-before", "20000"]);
    let sign = |key: &Path| ["sign", text(&change), "--key", text(key)].map(str::to_owned);
    let said = |desk: &Desk, arguments: [String; 4]| {
        desk.refused(&arguments.each_ref().map(String::as_str))
    };
    assert!(said(&other, sign(&other.key(0))).contains("the change is of network"));
    let stranger = said(&desk, sign(&other.key(0)));
    assert!(stranger.contains("is no member's of the epoch that ends"), "{stranger}");

    let accept = |key: &Path, executed: &str| {
        desk.refused(&["accept", text(&change), "--key", text(key), "--executed", executed])
    };
    assert!(accept(&other.key(0), "20000").contains("it has no place to accept"));
    let behind = accept(&desk.key(0), "9999");
    assert!(behind.contains("more than 10000 heights before the change"), "{behind}");

    // The identity of one member with the voting key of another.
    let mixed = desk.path("mixed");
    let [own, foreign] = [desk.key(0), desk.key(1)].map(|key| KeyFile::read(&key).expect("keys"));
    KeyFile { voting: foreign.voting, ..own }.write(&mixed).expect("written");
    let wrong = accept(&mixed, "20000");
    assert!(wrong.contains("is not the one that the change names for r0"), "{wrong}");

    edit(&change, "not_before = 20000", "not_before = 30000");
    let edited = desk.refused(&["show", text(&change)]);
    assert!(edited.contains("it was edited after it was drafted"), "{edited}");
}

#[test]
fn verify_says_what_a_change_lacks() {
    let desk = Desk::new();
    let (_, entry) = desk.newcomer("new", &[]);
    let change = desk.draft("change", &["--add", text(&entry), "--address", "r4=h:1"]);
    let lacks = |sentence: &str| {
        let (code, said) = desk.run(&["verify", text(&change)]);
        assert_eq!((code, said.contains(sentence)), (Some(1), true), "{said}");
        let submitted = desk.refused(&["submit", text(&change)]);
        assert!(submitted.contains(&format!("nobody was asked: {}", said.trim()[7..].trim())));
    };
    lacks("the approvals weigh 0; 3 are needed");
    desk.sign(&change, &[0, 1, 3]);
    lacks("the acceptances weigh 0; 4 are needed");
    desk.accept(&change, &[0, 1, 2, 3]);
    lacks("r4 is new in the next committee and has not accepted its place");
    // Somebody lets a member count twice.
    let signed = fs::read_to_string(&change).expect("a change");
    let [_, first, ..] = signed.split("[[approvals]]").collect::<Vec<_>>()[..] else {
        panic!("there are approvals in {signed}");
    };
    let twice = signed.replacen("[[approvals]]", &format!("[[approvals]]{first}[[approvals]]"), 1);
    fs::write(&change, twice).expect("written");
    lacks("the approval of r0 is there twice");
}

#[test]
fn merge_takes_good_signatures_of_the_same_change_alone() {
    let desk = Desk::new();
    let [change, other] =
        ["1", "2"].map(|tenure| desk.draft(tenure, &["--set", &format!("leader_tenure={tenure}")]));
    desk.sign(&other, &[0]);
    let merge = ["merge", text(&change), text(&other)];
    let said = desk.refused(&merge);
    assert!(said.contains("is another change"), "{said}");

    // The signature of one change under the text of another.
    let signed = fs::read_to_string(&other).expect("a change");
    let (_, approval) = signed.split_once("[[approvals]]").expect("it is signed");
    let mut forged = fs::read_to_string(&change).expect("a change");
    forged.push_str(&format!("\n[[approvals]]{approval}"));
    fs::write(&other, forged).expect("written");
    let said = desk.refused(&merge);
    assert!(said.contains("the approval of r0 does not verify"), "{said}");
    let shown = desk.must(&["show", text(&other)]);
    let worthless = "Approved by nobody: weight 0 of 3 needed";
    assert!(shown.contains(worthless) && shown.contains("Worth nothing: the approval"), "{shown}");
}

/// A committee, and the file of its next epoch, in which nothing differs.
fn next_epoch(genesis: &Path) -> (Committee, CommitteeFile) {
    let committee = load_committee(genesis, KeyCache::On).expect("a committee");
    let mut file = read_committee_file(genesis).expect("a committee file");
    (file.network, file.epoch) = (Some(committee.network()), committee.epoch().next());
    (committee, file)
}

/// Writes the file of hand-overs from a committee to one more epoch, signed by these members.
fn hand_over(desk: &Desk, signers: &[usize], settings: fn(&mut CommitteeFile)) -> PathBuf {
    let (genesis, mut file) = next_epoch(&desk.genesis());
    settings(&mut file);
    let header = Header { height: Height(41), ..Header::default() };
    let content = HandOver {
        height: header.height,
        stop: BlockId(hash(b"stop")),
        root: header.root(),
        file: file.digest(),
    };
    let signed = certify(desk, &genesis, content, signers);
    let path = desk.path("history");
    let steps = vec![HandedOver { signed, header, file }];
    fs::write(&path, borsh::to_vec(&steps).expect("memory")).expect("written");
    path
}

fn certify(desk: &Desk, ended: &Committee, content: HandOver, signers: &[usize]) -> SignedHandOver {
    let statement = content.statement(ended.scope());
    let share = |member: &usize| {
        let keys = KeyFile::read(&desk.key(*member)).expect("keys");
        (*member, ended.sign(Purpose::HandOver, &keys.voting, &statement))
    };
    let shares: Vec<_> = signers.iter().map(share).collect();
    let (scheme, _) = ended.scheme(Purpose::HandOver);
    let combined =
        scheme.combine(&statement, &shares, &Bitmap::new(ended.size()), Policy::Aggregate);
    SignedHandOver { content, certificate: combined.certificate.expect("good shares") }
}

#[test]
fn a_network_in_a_later_epoch_changes_by_its_history() {
    let desk = Desk::new();
    let early = desk.draft("early", &[]);
    let history = hand_over(&desk, &[0, 1, 2], |file| file.settings.leader_tenure = 4);
    let later = ["--history", text(&history)];
    let refused = desk.refused(&[&["show", text(&early)], &later[..]].concat());
    assert!(refused.contains("the change ends epoch e1, and e2 is in force"), "{refused}");

    let change = desk.path("change");
    let draft = ["draft", "--out", text(&change), "--set", "leader_tenure=5"];
    let said = desk.must(&[&draft[..], &later].concat());
    assert!(said.contains("leader_tenure, setting: 4 → 5"), "{said}");
    assert!(said.contains("Epoch 2 ends, and epoch 3 begins."), "{said}");
    for member in [0, 1, 3] {
        let key = desk.key(member);
        let own = [text(&change), "--key", text(&key)];
        desk.must(&[&["sign"], &own[..], &later].concat());
        desk.must(&[&["accept"], &own[..], &later, &["--executed", "50"]].concat());
    }
    desk.must(&[&["verify", text(&change)], &later[..]].concat());
    // Nobody signed for the first epoch.
    let first = desk.refused(&["show", text(&change)]);
    assert!(first.contains("the change ends epoch e2, and e1 is in force"), "{first}");
}

#[test]
fn a_history_is_shown_and_verified() {
    let desk = Desk::new();
    let history = hand_over(&desk, &[0, 2, 3], |file| file.settings.protocol = "sbft".into());
    let genesis = desk.genesis();
    let verify = ["committee", "history", text(&history), "--committee", text(&genesis)];
    let shown = json(&[&verify[..], &["--json"]].concat());
    assert_eq!(shown["verified"], true);
    let first = load_committee(&genesis, KeyCache::On).expect("a committee");
    let steps: Vec<HandedOver> =
        borsh::from_slice(&fs::read(&history).expect("a file")).expect("hand-overs");
    let known = History::walk(first, &steps, KeyCache::On).expect("a good history");
    let committees = known.committees();
    let epochs = shown["epochs"].as_array().expect("a list");
    let ids: Vec<String> = committees.iter().map(|one| one.epoch_id().to_string()).collect();
    let shown_ids: Vec<&str> = epochs.iter().filter_map(|epoch| epoch["id"].as_str()).collect();
    assert_eq!(shown_ids, ids);
    assert_eq!((&epochs[0]["last"], &epochs[1]["last"]), (&41.into(), &Value::Null));
    assert_eq!(epochs[1]["file"]["protocol"], "sbft");
    let unverified = stdout(&quorate(&verify[..3]));
    assert!(unverified.contains(&ids[1]) && unverified.contains("Nothing is verified"));

    hand_over(&desk, &[0, 2], |_| {});
    let few = quorate(&verify);
    assert_eq!(few.status.code(), Some(1), "{}", stdout(&few));
    let said = stderr(&few);
    assert!(said.contains("the hand-over of epoch e1: the certificate's signers"), "{said}");
    fs::write(&history, "hand-overs").expect("written");
    let said = quorate(&verify);
    assert_eq!(said.status.code(), Some(2));
    assert!(stderr(&said).contains("has no hand-overs"), "{}", stderr(&said));
}

/// The change is taken by name, by as many as make an honest one among them certain.
#[test]
fn members_take_a_complete_change_and_say_why_they_take_no_other() {
    let net = Net::start_with(4, "bls", &["--clients", "listed"], |_| {});
    net.wait_connected();
    let folder = net.folder();
    let place = ["--net", text(&folder)];
    let client = folder.join("client/key.toml");
    let complete = |name: &str, options: &[&str]| {
        let change = folder.with_file_name(name);
        let drafted = run(&[&["draft", "--out", text(&change)], options].concat(), &place);
        assert_eq!(drafted.0, Some(0), "{}", drafted.1);
        for member in 0..3 {
            let key = key_of(&folder, member);
            let status = format!("http://{}", net.http[member]);
            let arguments = ["accept", text(&change), "--key", text(&key), "--status", &status];
            let accepted = run(&arguments, &place);
            assert_eq!(accepted.0, Some(0), "{}", accepted.1);
        }
        sign(&folder, &change, &[1, 2, 3]);
        change
    };
    let every = |said: &str, sentence: &str| {
        let missing = (0..4).find(|member| !said.contains(&format!("r{member}: {sentence}")));
        assert_eq!(missing, None, "{said}");
    };
    let late = complete("late", &["--expires", "0"]);
    let listed = ["--key", text(&client)];
    let (code, said) = run(&[&["submit", text(&late)], &listed[..]].concat(), &place);
    assert_eq!(code, Some(1), "{said}");
    every(&said, "the change expired at h0");

    // Members look themselves at what the command did not let through.
    let (committee, file) = next_epoch(&folder.join("committee.toml"));
    let (network, epoch) = (committee.network(), committee.epoch());
    let (not_before, expires) = (Height(0), Height(9));
    let change = Change { network, epoch, file, not_before, expires };
    let unsigned = SignedChange { change, approvals: Vec::new(), acceptances: Vec::new() };
    let identity = KeyFile::read(&client).expect("keys").identity;
    let brought = bring_change(&Arc::new(committee), &identity, &unsigned).expect("all asked");
    let reason = "the approvals weigh 0; 3 are needed".to_owned();
    assert_eq!(brought.refused, [0, 1, 2, 3].map(|member| (ReplicaId(member), reason.clone())));

    // Of a height that is far away: the epoch goes on while members are asked.
    let change = complete("change", &["--set", "leader_tenure=2", "--not-before", "1000"]);
    let (code, said) = run(&["submit", text(&change)], &place);
    assert_eq!(code, Some(1), "{said}");
    every(&said, "cannot be reached");
    assert!(said.contains("it lets in listed clients alone"), "{said}");

    let submit = ["committee", "submit", text(&change), "--json"];
    let taken = json(&[&submit[..], &place, &listed].concat());
    let shown = json(&[&["committee", "show", text(&change), "--json"], &place[..]].concat());
    assert_eq!(taken["digest"], shown["change"]["digest"]);
    assert_eq!(taken["taken"], serde_json::json!([0, 1]));
    assert_eq!(taken["refused"], serde_json::json!([]));
}
