use super::*;
use crate::{Testnet, TestnetPlan};
use quorate_crypto::{KeyFile, Passphrase, SchemeKind, SealCost};
use quorate_storage::{Journal, LogConfig, Owner, RealDisk};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// A testnet on an address that nothing else has.
struct Net {
    _place: TempDir,
    testnet: Testnet,
}

impl Net {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let plan = TestnetPlan { host: own_host(), ..TestnetPlan::default() };
        let testnet = Testnet::create(&place.path().join("net"), &plan).unwrap();
        Self { _place: place, testnet }
    }

    fn config(&self, index: usize) -> PathBuf {
        self.testnet.configs[index].clone()
    }

    fn key(&self, index: usize) -> PathBuf {
        self.testnet.directory.join(format!("validator-{index}/key.toml"))
    }

    fn edit(&self, file: &Path, from: &str, to: &str) {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{from:?} is not in {text}");
        fs::write(file, text.replacen(from, to, 1)).unwrap();
    }

    fn check(&self, index: usize) -> Vec<Finding> {
        self.check_all(&[index]).remove(0).findings
    }

    fn check_all(&self, members: &[usize]) -> Vec<Checked> {
        let files: Vec<_> = members.iter().map(|index| self.config(*index)).collect();
        check(&files, &|name| match name {
            "ordered-log" => Ok(Versions::FIRST),
            _ => Err(format!("there is no service '{name}'")),
        })
        .into_iter()
        .map(without_machine)
        .collect()
    }

    /// The one finding after an edit of the first member's configuration.
    fn one_after(from: &str, to: &str) -> Finding {
        let net = Self::new();
        net.edit(&net.config(0), from, to);
        one(net.check(0))
    }
}

/// Without what depends on the machine that runs the test.
fn without_machine(mut checked: Checked) -> Checked {
    let of_machine = ["GiB are free", "this machine has", "on a machine with"];
    checked
        .findings
        .retain(|finding| !of_machine.iter().any(|text| finding.problem.contains(text)));
    checked
}

fn one(mut findings: Vec<Finding>) -> Finding {
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

/// A loopback address that no other test has, in this process or another: all of 127/8 is ours.
fn own_host() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let (process, test) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    format!("127.{}.{}.{}", 1 + process / 250 % 250, process % 250, test)
}

fn line_of(file: &Path, text: &str) -> Option<usize> {
    let content = fs::read_to_string(file).unwrap();
    content.lines().position(|line| line.starts_with(text)).map(|index| index + 1)
}

#[test]
fn a_new_testnet_has_nothing_wrong() {
    let net = Net::new();
    for (index, checked) in net.check_all(&[0, 1, 2, 3]).into_iter().enumerate() {
        assert_eq!(checked.findings, []);
        assert_eq!(checked.member.map(usize::from), Some(index));
        assert_eq!(checked.sealed, Some(false));
        let expected = Thresholds { members: 4, weight: 4, faulty: 1, quorum: 3, weak: 2 };
        assert_eq!(checked.committee, Some(expected));
    }
}

#[test]
fn everything_is_reported_at_once_with_its_line() {
    let net = Net::new();
    let file = net.config(0);
    net.edit(&file, "verify_threads = 2", "verify_threads = 0");
    net.edit(&file, "timeout_ms = 1000", "timout_ms = 1000");
    net.edit(&file, "batch_bytes = 500000", "batch_bytes = \"big\"");
    net.edit(&file, "durability = \"fsync\"", "durability = \"os\"");
    let findings = net.check(0);
    let found: Vec<_> = findings.iter().map(|f| (f.line, f.severity)).collect();
    let mut expected = vec![
        (line_of(&file, "durability"), Severity::Warning),
        (line_of(&file, "verify_threads"), Severity::Error),
        (line_of(&file, "batch_bytes"), Severity::Error),
        (line_of(&file, "timout_ms"), Severity::Error),
    ];
    expected.sort();
    assert_eq!(found, expected, "{findings:#?}");
    let all = findings.iter().map(|f| format!("{} {}\n", f.problem, f.hint)).collect::<String>();
    for text in ["did you mean `timeout_ms`?", "1 to 64", "\"big\"", "1024 to 3145728"] {
        assert!(all.contains(text), "{text}: {all}");
    }
}

#[test]
fn what_is_no_toml_is_pointed_at() {
    let net = Net::new();
    let file = net.config(0);
    net.edit(&file, "verify_threads = 2", "verify_threads = ");
    let findings = net.check(0);
    assert_eq!(findings[0].line, line_of(&file, "verify_threads"), "{findings:#?}");
    assert!(findings.iter().all(|finding| finding.severity == Severity::Error));
}

#[test]
fn a_field_in_the_wrong_section_is_told_where_it_belongs() {
    let finding = Net::one_after("[log]", "[log]\ntimeout_ms = 1000");
    assert!(finding.hint.contains("[replica]"), "{finding:?}");
    let net = Net::new();
    net.edit(&net.config(0), "\ndata_dir = ", "\nlevel = \"info\"\ndata_dir = ");
    assert!(one(net.check(0)).hint.contains("[log]"));
}

#[test]
fn fields_that_depend_on_others_are_judged_together() {
    let net = Net::new();
    net.edit(&net.config(0), "timeout_ms = 1000", "timeout_ms = 9000");
    net.edit(&net.config(0), "vote_wait_ms = 0", "vote_wait_ms = 2000");
    assert_eq!(net.check(0), []);
    let finding = Net::one_after("vote_wait_ms = 0", "vote_wait_ms = 1000");
    assert!(finding.problem.contains("less than timeout_ms"), "{finding:?}");
}

#[test]
fn settings_for_comparisons_are_all_pointed_at() {
    let net = Net::new();
    net.edit(&net.config(0), "[replica]", "[replica]\nflow_control = \"fixed\"");
    let key = "proposal_key = \"identity\"";
    net.edit(&net.testnet.committee, key, "proposal_key = \"voting\"");
    let problems: Vec<String> = net.check(0).into_iter().map(|found| found.problem).collect();
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(problems[0].starts_with("'flow_control' is for comparisons"), "{problems:#?}");
    assert!(problems[1].starts_with("'proposal_key' is for comparisons"), "{problems:#?}");

    net.edit(&net.config(0), "comparison = false", "comparison = true");
    let finding = one(net.check(0));
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.problem.starts_with("comparison is true"), "{finding:?}");
}

#[test]
fn missing_fields_and_files_are_named() {
    let net = Net::new();
    let file = net.config(0);
    net.edit(&file, "key = \"key.toml\"", "");
    let finding = one(net.check(0));
    assert_eq!(finding.problem, "'key' is missing");
    net.edit(
        &file,
        "committee = \"../committee.toml\"",
        "committee = \"../comittee.toml\"\nkey = \"key\"",
    );
    let findings = net.check(0);
    assert_eq!(findings.len(), 2, "{findings:#?}");
    assert!(findings[0].problem.contains("comittee.toml") && findings[1].problem.contains("key"));
    assert_eq!(findings[0].line, line_of(&file, "committee"));

    let nowhere = check(&[PathBuf::from("/nowhere/config.toml")], &|_| Ok(Versions::FIRST));
    assert!(one(nowhere[0].findings.clone()).problem.contains("cannot be read"));
}

#[test]
fn a_key_of_nobody_or_open_to_others_is_refused() {
    let net = Net::new();
    fs::set_permissions(net.key(0), fs::Permissions::from_mode(0o640)).unwrap();
    let finding = one(net.check(0));
    assert!(finding.problem.contains("chmod 600"), "{finding:?}");
    assert_eq!(finding.line, line_of(&net.config(0), "key"));

    fs::remove_file(net.key(0)).unwrap();
    KeyFile::from_seed(SchemeKind::Ed25519, &[9; 32]).write(&net.key(0)).unwrap();
    let finding = one(net.check(0));
    assert!(finding.problem.contains("is no member's"), "{finding:?}");
}

#[test]
fn a_voting_key_that_the_committee_does_not_know_is_refused() {
    let net = Net::new();
    let keys = KeyFile::read(&net.key(0)).unwrap();
    let other = KeyFile::from_seed(SchemeKind::Ed25519, &[9; 32]);
    KeyFile { identity: keys.identity, voting: other.voting }.replace(&net.key(0)).unwrap();
    let finding = one(net.check(0));
    assert!(finding.problem.contains("for member r0"), "{finding:?}");
}

#[test]
fn a_sealed_key_is_opened_with_its_passphrase_file() {
    let net = Net::new();
    let words = net.key(0).with_file_name("words");
    fs::write(&words, "correct horse battery staple\n").unwrap();
    fs::set_permissions(&words, fs::Permissions::from_mode(0o600)).unwrap();
    let passphrase = Passphrase::from_file(b"correct horse battery staple").unwrap();
    let cost = SealCost { memory_kib: 64, passes: 1, lanes: 1 };
    let keys = KeyFile::read(&net.key(0)).unwrap();
    keys.replace_sealed(&net.key(0), &passphrase, cost, &mut |bytes| bytes.fill(1)).unwrap();

    let finding = one(net.check(0));
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.problem.contains("sealed"), "{finding:?}");

    net.edit(&net.config(0), "# passphrase_file = \"passphrase\"", "passphrase_file = \"words\"");
    let checked = net.check_all(&[0]).remove(0);
    assert_eq!((checked.findings, checked.sealed, checked.member), (vec![], Some(true), Some(0)));

    fs::write(&words, "correct horse battery stable\n").unwrap();
    let finding = one(net.check(0));
    assert!(finding.problem.contains("the wrong one"), "{finding:?}");

    fs::set_permissions(&words, fs::Permissions::from_mode(0o644)).unwrap();
    let finding = one(net.check(0));
    assert!(finding.problem.contains("open to others (mode 0644)"), "{finding:?}");
}

#[test]
fn mistakes_in_the_committee_file_are_pointed_at() {
    let net = Net::new();
    let committee = net.testnet.committee.clone();
    net.edit(&committee, "address = \"127.", "adress = \"127.");
    let findings = net.check(0);
    assert_eq!(findings.len(), 2, "{findings:#?}");
    assert!(findings.iter().all(|finding| finding.file.ends_with("committee.toml")));
    assert!(findings.iter().any(|finding| finding.hint == "did you mean `address`?"));
    assert!(findings.iter().any(|finding| finding.problem == "members[0]: 'address' is missing"));

    let net = Net::new();
    let committee = net.testnet.committee.clone();
    net.edit(&committee, "identity = \"", "identity = \"zz");
    let findings = net.check(0);
    let finding = &findings[0];
    assert!(finding.problem.contains("member 0"), "{findings:#?}");
    assert_eq!(finding.line, line_of(&committee, "[[members]]"));
}

#[test]
fn weights_that_are_unwise_or_no_committee_are_pointed_at() {
    let after = |weight: &str| {
        let net = Net::new();
        net.edit(&net.testnet.committee, "weight = 1\n", &format!("weight = {weight}\n"));
        one(net.check(0))
    };
    let heavy = after("3");
    assert_eq!(heavy.severity, Severity::Warning, "{heavy:?}");
    assert!(heavy.problem.starts_with("no quorum without member 0"), "{heavy:?}");
    for (weight, problem) in
        [("7", "member 0 has 7 of the committee's weight of 10"), ("0", "weight 0")]
    {
        let found = after(weight);
        assert_eq!(found.severity, Severity::Error, "{found:?}");
        assert!(found.problem.contains(problem) && found.line.is_some(), "{found:?}");
    }
}

#[test]
fn addresses_of_members_resolve_and_differ() {
    let net = Net::new();
    let text = fs::read_to_string(&net.testnet.committee).unwrap();
    let address = |index: usize| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("address = "));
        lines.map(|address| address.trim_matches('"').to_owned()).nth(index).unwrap()
    };
    net.edit(&net.testnet.committee, &address(1), &address(2));
    let finding = one(net.check(0));
    assert!(finding.problem.contains("members 1 and 2 have the same address"), "{finding:?}");
    net.edit(&net.testnet.committee, &address(2), "127.0.0.1:port");
    let finding = one(net.check(0));
    assert!(finding.problem.starts_with("member 1: '127.0.0.1:port'"), "{finding:?}");
}

#[test]
fn ports_in_use_or_used_twice_are_noticed() {
    let net = Net::new();
    let http = net.testnet.http[0].clone();
    let held = TcpListener::bind(&http).unwrap();
    let finding = one(net.check(0));
    assert_eq!(finding.severity, Severity::Warning);
    assert!(finding.problem.contains("is in use"), "{finding:?}");
    drop(held);

    let committee = fs::read_to_string(&net.testnet.committee).unwrap();
    let peers = committee.split("address = \"").nth(1).unwrap().split('"').next().unwrap();
    net.edit(&net.config(0), &http, peers);
    let finding = one(net.check(0));
    assert!(finding.problem.contains("are both port"), "{finding:?}");

    let finding = Net::one_after("# listen = \"0.0.0.0:7000\"", "listen = \"192.0.2.1:7000\"");
    assert!(finding.problem.contains("no address of this machine"), "{finding:?}");
}

#[test]
fn doors_in_clear_and_doors_open_to_others_are_noticed() {
    let net = Net::new();
    let http = format!("http = \"{}\"", net.testnet.http[0]);
    net.edit(&net.config(0), &http, "http = \"0.0.0.0:0\"");
    let found = net.check(0);
    let has = |found: &[Finding], severity, text: &str| {
        let is_it = |it: &Finding| it.severity == severity && it.problem.contains(text);
        assert!(found.iter().any(is_it), "{text} is not in {found:#?}");
    };
    has(&found, Severity::Error, "over a network in clear");
    has(&found, Severity::Warning, "open to others");
    assert_eq!(found.len(), 2, "{found:#?}");

    net.edit(&net.config(0), "http_insecure = false", "http_insecure = true");
    let found = net.check(0);
    has(&found, Severity::Warning, "are shown there in clear");
    has(&found, Severity::Warning, "open to others");
    assert_eq!(found.len(), 2, "{found:#?}");

    let line = "http_tokens_file = \"http-tokens.toml\"";
    net.edit(&net.config(0), &format!("# {line}"), line);
    let found = net.check(0);
    has(&found, Severity::Error, "cannot read the token file");
    has(&found, Severity::Warning, "are shown there in clear");
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn a_certificate_without_a_key_is_one_finding() {
    let line = "tls_cert = \"cert.pem\"";
    let finding = Net::one_after(&format!("# {line}"), line);
    assert!(finding.problem.contains("name a certificate (tls_cert) and its key"), "{finding:?}");
}

#[test]
fn unwise_values_are_warned_of() {
    for (from, to, text) in [
        ("durability = \"fsync\"", "durability = \"os\"", "power cut"),
        ("timeout_ms = 1000", "timeout_ms = 50", "will time out"),
        ("batch_bytes = 500000", "batch_bytes = 1024", "small"),
        ("batch_delay_ms = 5", "batch_delay_ms = 600", "more than half"),
        ("vote_wait_ms = 0", "vote_wait_ms = 300", "a quarter"),
        ("follow_only = false", "follow_only = true", "never votes"),
        ("[log]", "[emulation]\ndelay_ms = 5\n[log]", "is emulated"),
        ("level = \"info\"", "level = \"trace\"", "every connection"),
    ] {
        let finding = Net::one_after(from, to);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.problem.contains(text), "{finding:?}");
    }
}

#[test]
fn a_log_that_may_outgrow_its_disk_is_refused() {
    let net = Net::new();
    let text = fs::read_to_string(net.config(0)).unwrap();
    let line = text.lines().find(|line| line.starts_with("retention_bytes")).unwrap();
    net.edit(&net.config(0), line, &format!("retention_bytes = {}", i64::MAX));
    let findings = check(&[net.config(0)], &|_| Ok(Versions::FIRST)).remove(0).findings;
    let about = |finding: &&Finding| finding.line == line_of(&net.config(0), "retention_bytes");
    let finding = findings.iter().find(about).unwrap();
    assert_eq!(finding.severity, Severity::Error);
    assert!(finding.problem.contains("may still grow"), "{finding:?}");
}

#[test]
fn weights_that_make_a_member_indispensable_are_warned_of() {
    let net = Net::new();
    net.edit(&net.testnet.committee, "weight = 1", "weight = 2");
    let checked = net.check_all(&[0]).remove(0);
    let committee = checked.committee.unwrap();
    assert_eq!((committee.members, committee.weight, committee.quorum), (4, 5, 4));
    assert_eq!(one(checked.findings).severity, Severity::Warning);
    net.edit(&net.testnet.committee, "weight = 2", "weight = 9");
    let findings = net.check(0);
    let refused = |finding: &Finding| finding.problem.contains("a quorum by itself");
    assert!(findings.iter().any(refused), "{findings:#?}");
}

#[test]
fn a_key_whose_log_is_gone_is_warned_of() {
    let net = Net::new();
    let committee = NodeConfig::load(&net.config(0)).unwrap().load_committee().unwrap();
    let used = format!("{} used\n", hex::encode(committee.network().0));
    fs::write(net.key(0).with_extension("used"), used).unwrap();
    let finding = one(net.check(0));
    assert!(finding.problem.contains("never vote"), "{finding:?}");
    let data = net.key(0).with_file_name("data");
    let disk = |name| Box::new(RealDisk::open(&data.join(name)).unwrap());
    let journal =
        Journal::open(disk("log"), disk("bodies"), &Owner::nobody(), LogConfig::default(), None);
    journal.unwrap().0.begin().unwrap();
    assert_eq!(net.check(0), []);
}

#[test]
fn a_data_folder_that_cannot_be_one_is_refused() {
    let net = Net::new();
    fs::write(net.key(0).with_file_name("data"), "a file").unwrap();
    let finding = one(net.check(0));
    assert!(finding.problem.contains("is not a folder"), "{finding:?}");
}

#[test]
fn several_validators_are_compared() {
    let net = Net::new();
    fs::copy(net.key(0), net.key(1)).unwrap();
    net.edit(&net.config(2), "data_dir = \"data\"", "data_dir = \"../validator-0/data\"");
    net.edit(&net.config(3), &net.testnet.http[3], &net.testnet.http[0]);
    let committee = fs::read_to_string(&net.testnet.committee).unwrap();
    let other = net.testnet.directory.join("other.toml");
    let (jolteon, hotstuff) = ("protocol = \"jolteon\"", "protocol = \"hotstuff\"");
    fs::write(&other, committee.replace(jolteon, hotstuff)).unwrap();
    net.edit(&net.config(3), "../committee.toml", "../other.toml");
    let all = net.check_all(&[0, 1, 2, 3]);
    let problems = |index: usize| -> Vec<String> {
        all[index].findings.iter().map(|finding| finding.problem.clone()).collect()
    };
    let has = |index: usize, text: &str| {
        let problems = problems(index);
        assert!(problems.iter().any(|problem| problem.contains(text)), "{text}: {problems:#?}");
    };
    assert_eq!(problems(0), [""; 0]);
    has(1, "the same key as");
    has(1, "the same address for peers");
    has(2, "the same data_dir as");
    has(3, "the same address for status");
    has(3, "another committee file than");
}

#[test]
fn settings_in_the_wrong_file_are_told_where_they_belong() {
    let net = Net::new();
    net.edit(&net.config(0), "[replica]", "[replica]\nsnapshot_every = 32");
    net.edit(&net.testnet.committee, "\n[settings]", "\n[settings]\ntimeout_ms = 500");
    let findings = net.check(0);
    let problems: Vec<&str> = findings.iter().map(|found| found.problem.as_str()).collect();
    assert_eq!(
        problems,
        [
            "'snapshot_every' is agreed by all members: it stands in [settings] of the committee file",
            "'timeout_ms' is each member's own: it stands in its configuration file, in the section \
             [replica]",
        ]
    );
    assert_eq!(findings[0].line, line_of(&net.config(0), "snapshot_every"));
    assert_eq!(findings[1].line, line_of(&net.testnet.committee, "timeout_ms"));
    assert_eq!(problems_in_text(&net), ["'snapshot_every'"]);
}

/// First words of what the configuration's text alone shows.
fn problems_in_text(net: &Net) -> Vec<String> {
    let first = |found: Finding| found.problem.split(' ').next().unwrap_or_default().to_owned();
    problems(&net.config(0)).into_iter().map(first).collect()
}

#[test]
fn every_wrong_value_of_an_agreed_setting_is_pointed_at() {
    let net = Net::new();
    let committee = &net.testnet.committee;
    for (from, to) in [
        ("protocol = \"jolteon\"", "protocol = \"paxos\""),
        ("leader_tenure = 1", "leader_tenure = 0"),
        ("snapshot_every = 1024", "snapshot_every = \"often\""),
        ("clients = \"open\"", "clients = \"friends\""),
        ("service = \"ordered-log\"", "service = \"ledger\""),
    ] {
        net.edit(committee, from, to);
    }
    let findings = net.check(0);
    let mut found: Vec<_> = findings.iter().map(|found| (found.line, found.severity)).collect();
    found.sort();
    let names = ["protocol", "leader_tenure", "snapshot_every", "clients", "service"];
    let mut expected = names.map(|name| (line_of(committee, name), Severity::Error));
    expected.sort();
    assert_eq!(found, expected, "{findings:#?}");
    assert!(findings.iter().all(|found| found.file.ends_with("committee.toml")));
}

/// The program does not start with a version that it lacks, nor with none.
#[test]
fn a_version_that_the_program_lacks_is_pointed_at() {
    for (version, says) in [
        ("2", "version 2, and this program has version 1 alone"),
        ("0", "'execution_version' is 0; it must be at least 1"),
    ] {
        let net = Net::new();
        let committee = &net.testnet.committee;
        net.edit(committee, "execution_version = 1", &format!("execution_version = {version}"));
        let found = one(net.check(0));
        assert!(found.problem.contains(says), "{found:?}");
        assert_eq!(found.severity, Severity::Error);
        assert_eq!(found.line, line_of(committee, "execution_version"));
    }
}

/// The genesis file has to be the one that all members agreed on.
#[test]
fn another_genesis_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let genesis = Some("{}".to_owned());
    let plan = TestnetPlan { host: own_host(), genesis, ..TestnetPlan::default() };
    let testnet = Testnet::create(&place.path().join("net"), &plan).unwrap();
    let checked = || check(&testnet.configs[..1], &|_| Ok(Versions::FIRST)).remove(0);
    let findings = || without_machine(checked()).findings;
    assert_eq!(findings(), []);
    fs::write(testnet.directory.join("genesis.json"), "{ }").unwrap();
    assert!(one(findings()).problem.contains("every member has the same one"));
    fs::remove_file(testnet.directory.join("genesis.json")).unwrap();
    assert!(one(findings()).problem.contains("cannot read"));
    let text = fs::read_to_string(&testnet.configs[0]).unwrap();
    fs::write(&testnet.configs[0], text.replace("\ngenesis = ", "\n# genesis = ")).unwrap();
    assert!(one(findings()).problem.contains("'genesis' is missing"));
}

#[test]
fn members_of_different_chains_are_told() {
    let (net, other) = (Net::new(), Net::new());
    let files = [net.config(0), other.config(0)];
    let all = check(&files, &|_| Ok(Versions::FIRST));
    let problems: Vec<_> = all[1].findings.iter().map(|finding| &finding.problem).collect();
    assert!(problems.iter().any(|p| p.contains("another committee file")), "{problems:?}");
}

#[test]
fn the_texts_problems_are_found_without_looking_around() {
    let net = Net::new();
    fs::remove_file(net.key(0)).unwrap();
    assert_eq!(problems(&net.config(0)), []);
    net.edit(&net.config(0), "timeout_ms", "timeout");
    assert_eq!(problems(&net.config(0)).len(), 1);
}

#[test]
fn a_list_of_clients_and_a_certificate_are_read() {
    let net = Net::new();
    net.edit(&net.testnet.committee, "clients = \"open\"", "clients = \"listed\"");
    let list = one(net.check(0));
    assert!(list.problem.contains("cannot read list of clients"), "{}", list.problem);
    let net = Net::new();
    net.edit(&net.config(0), "# tls_cert = \"cert.pem\"", "tls_cert = \"absent.pem\"");
    net.edit(&net.config(0), "# tls_key = \"cert.key\"", "tls_key = \"absent.key\"");
    let certificate = one(net.check(0));
    assert!(certificate.problem.contains("absent.pem"), "{}", certificate.problem);
}
