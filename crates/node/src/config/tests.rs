use super::fields::{
    AGREED, COMMITTEE, CONFIG, Field, FieldDefault, Kind, NO_BOUND, Section, is_agreed,
    local_section,
};
use super::*;
use quorate_crypto::IdentitySecret;
use quorate_types::{AgreedSettings, FromState, Groups, Member};
use toml::{Table, Value};

fn config() -> NodeConfig {
    NodeConfig::new("../committee.toml".into(), "key.toml".into(), "data".into())
}

/// One that may be a learner's too.
fn with_address() -> NodeConfig {
    NodeConfig { listen: Some("127.0.0.1:7000".into()), ..config() }
}

/// A configuration in a folder of its own, and beside that a committee file without members.
fn write(text: &str) -> (tempfile::TempDir, PathBuf) {
    write_with(text, "")
}

/// The same with these settings in the committee file.
fn write_with(text: &str, settings: &str) -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("validator/config.toml");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    let committee = "name = \"net\"\nepoch = 1\nscheme = \"ed25519\"\nmembers = []\n";
    let committee = format!("{committee}[settings]\n{settings}\n");
    std::fs::write(place.path().join("committee.toml"), committee).unwrap();
    (place, path)
}

/// What a configuration file holds of it.
fn local_table(config: &NodeConfig) -> Table {
    let mut table = Table::try_from(config).unwrap();
    table.retain(|name, _| !is_agreed(name));
    table
}

fn agreed_fields() -> &'static [Field] {
    COMMITTEE.iter().find(|section| section.name == AGREED).unwrap().fields
}

#[test]
fn the_commented_file_says_what_the_struct_says() {
    let mut config = config();
    config.durability = Durability::Os;
    config.replica.batch_delay_ms = 77;
    assert_eq!(toml::from_str::<NodeConfig>(&config.to_toml()).unwrap(), config);
    config.emulation = Some(Emulation::default());
    config.listen = Some("0.0.0.0:1".into());
    config.emulation =
        Some(Emulation { regions: vec!["us-east-1".into()], ..Emulation::default() });
    assert_eq!(toml::from_str::<NodeConfig>(&config.to_toml()).unwrap(), config);
}

#[test]
fn only_the_three_paths_are_required() {
    let text = "committee = \"../committee.toml\"\nkey = \"key.toml\"\ndata_dir = \"data\"\n";
    assert_eq!(toml::from_str::<NodeConfig>(text).unwrap(), config());
}

#[test]
fn relative_paths_are_meant_from_the_files_folder() {
    let (place, path) = write_with(&config().to_toml(), "clients = \"listed\"");
    let loaded = NodeConfig::load(&path).unwrap();
    let folder = place.path().join("validator");
    assert_eq!(loaded.key, folder.join("key.toml"));
    assert_eq!(loaded.data_dir, folder.join("data"));
    assert_eq!(loaded.clients_file, Some(folder.join("clients.toml")));
}

#[test]
fn errors_name_the_file_the_field_and_the_remedy() {
    let (_folder, path) =
        write(&config().to_toml().replace("verify_threads = 2", "verify_threads = 0"));
    let message = NodeConfig::load(&path).unwrap_err().to_string();
    assert_eq!(message, format!("{}: 'verify_threads' is 0; it must be 1 to 64", path.display()));

    let (_folder, path) = write(&config().to_toml().replace("timeout_ms = 1000", "timeout_ms = 1"));
    let message = NodeConfig::load(&path).unwrap_err().to_string();
    assert!(
        message.contains("config.toml, section [replica]: setting 'timeout_ms' is 1"),
        "{message}"
    );

    let (_folder, path) =
        write(&format!("{}[emulation]\nregions = [\"us-eats-1\"]\n", config().to_toml()));
    let message = NodeConfig::load(&path).unwrap_err().to_string();
    assert!(message.contains("[emulation]: there is no region 'us-eats-1'"), "{message}");

    let (_folder, path) = write("committe = \"x\"\n");
    let message = NodeConfig::load(&path).unwrap_err().to_string();
    assert!(message.contains("unknown field `committe`"), "{message}");

    let absent = Path::new("/nowhere/config.toml");
    let message = NodeConfig::load(absent).unwrap_err().to_string();
    assert!(
        message.starts_with("cannot read configuration file /nowhere/config.toml: "),
        "{message}"
    );
}

fn documented(section: &Section) -> Vec<&'static str> {
    let mut names: Vec<_> = section.fields.iter().map(|field| field.name).collect();
    names.sort_unstable();
    names
}

fn sorted(names: &[&'static str]) -> Vec<&'static str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

/// A new field of a struct without a line in `fields.rs` fails here, and so does a line without a
/// field.
#[test]
fn every_field_is_documented() {
    let sections: Vec<&str> = CONFIG.iter().map(|section| section.name).collect();
    let top: Vec<_> =
        names::of::<NodeConfig>().iter().filter(|name| !sections.contains(name)).copied().collect();
    assert_eq!(documented(&CONFIG[0]), sorted(&top));
    assert_eq!(documented(&CONFIG[1]), sorted(names::of::<LogSettings>()));
    let local: Vec<_> = names::of::<Settings>().iter().filter(|name| !is_agreed(name)).collect();
    assert_eq!(documented(&CONFIG[2]), sorted(&local.into_iter().copied().collect::<Vec<_>>()));
    assert_eq!(documented(&CONFIG[3]), sorted(names::of::<Emulation>()));
    assert_eq!(CONFIG.len(), 4, "compare the new section with its struct here");
    assert_eq!(documented(&COMMITTEE[0]), sorted(names::of::<CommitteeFile>()));
    assert_eq!(documented(&COMMITTEE[1]), sorted(names::of::<AgreedSettings>()));
    assert_eq!(documented(&COMMITTEE[2]), sorted(names::of::<Groups>()));
    assert_eq!(documented(&COMMITTEE[3]), sorted(names::of::<FromState>()));
    assert_eq!(documented(&COMMITTEE[4]), sorted(names::of::<Member>()));
    assert_eq!(COMMITTEE.len(), 5, "compare the new section with its struct here");
    for section in CONFIG.iter().chain(COMMITTEE) {
        for field in section.fields {
            assert!(field.meaning.len() > 30, "'{}' says too little", field.name);
            assert!(field.meaning.ends_with('.'), "'{}' ends without a point", field.name);
        }
    }
}

/// A field whose value is a section of its own needs a section in `fields.rs`.
#[test]
fn every_section_is_documented() {
    let complete = NodeConfig { emulation: Some(Emulation::default()), ..config() };
    let table = Table::try_from(complete).unwrap();
    for (name, value) in &table {
        let known = CONFIG.iter().any(|section| section.name == name);
        assert_eq!(value.is_table(), known, "section [{name}]");
    }
    let names = table.iter().filter(|(_, value)| value.is_table()).count();
    assert_eq!(names, CONFIG.len() - 1, "a section that is optional is to be set above");
}

const PATHS: &str = "committee = \"../committee.toml\"\nkey = \"key.toml\"\ndata_dir = \"data\"\n";

/// Loads a file with these lines above all sections, and this one where the setting `name` stands.
fn load_with(name: &str, line: &str, top: &str) -> Result<NodeConfig, String> {
    let (replica, settings) = if is_agreed(name) { ("", line) } else { (line, "") };
    let (_place, path) = write_with(&format!("{PATHS}{top}\n[replica]\n{replica}\n"), settings);
    NodeConfig::load(&path).map_err(|error| error.to_string())
}

/// Every setting for comparisons: at its default, and away from it.
const FOR_COMPARISONS: [(&str, &str, &str); 11] = [
    ("block_operations_max", "0", "600"),
    ("block_bodies_max", "0", "31"),
    ("sealing", "\"delay\"", "\"demand\""),
    ("filter_requests", "true", "false"),
    ("key_cache", "\"on\"", "\"subtract\""),
    ("proposal_key", "\"identity\"", "\"voting\""),
    ("vote_salvage", "true", "false"),
    ("truncation", "\"ids\"", "\"heights\""),
    ("signatures", "true", "false"),
    ("flow_control", "\"delay\"", "\"fixed\""),
    ("fetch_grace", "true", "false"),
];

#[test]
fn a_validator_refuses_settings_for_comparisons_by_name() {
    for (name, usual, away) in FOR_COMPARISONS {
        let loaded = load_with(name, &format!("{name} = {usual}"), "").unwrap();
        assert_eq!(loaded.replica, Settings::default());
        let error = load_with(name, &format!("{name} = {away}"), "").unwrap_err();
        let place = if is_agreed(name) {
            "committee.toml, section [settings]"
        } else {
            "config.toml, section [replica]"
        };
        let said = format!(
            "{place}: '{name}' is for comparisons with papers, in `quorate bench`, \
             `quorate sim` and the laboratory; a validator takes its default alone: remove it"
        );
        assert!(error.ends_with(&said), "{error}");
    }
}

#[test]
fn a_benchs_file_takes_settings_for_comparisons_but_for_missing_signatures() {
    for (name, _, away) in FOR_COMPARISONS {
        let loaded = load_with(name, &format!("{name} = {away}"), "comparison = true");
        if name == "signatures" {
            assert!(loaded.unwrap_err().contains("only simulated replicas go without"));
        } else {
            assert_eq!(loaded.unwrap().replica.comparison.departures(), [name]);
        }
    }
}

#[test]
fn settings_for_comparisons_are_those_that_are_documented_so() {
    let fields = CONFIG.iter().chain(COMMITTEE).flat_map(|section| section.fields);
    let documented = fields.filter(|field| field.for_comparisons).map(|field| field.name);
    let documented: Vec<_> = documented.collect();
    assert_eq!(sorted(&documented), sorted(&FOR_COMPARISONS.map(|(name, ..)| name)));
}

#[test]
fn templates_leave_settings_for_comparisons_out_unless_they_depart() {
    let mut config = NodeConfig { comparison: true, ..config() };
    for (name, ..) in FOR_COMPARISONS {
        for text in [config.to_toml(), effective(&config)] {
            assert!(!text.contains(&format!("{name} = ")), "{text}");
        }
    }
    config.replica.comparison.vote_salvage = false;
    for text in [config.to_toml(), effective(&config)] {
        assert!(text.contains("\nvote_salvage = false"), "{text}");
    }
    assert_eq!(toml::from_str::<NodeConfig>(&config.to_toml()).unwrap(), config);
}

/// Files and results have all settings beside one another, in this order.
#[test]
fn settings_are_one_flat_table() {
    let names = names::of::<Settings>();
    assert!(!Table::try_from(Settings::default()).unwrap().values().any(Value::is_table));
    let first = ["protocol", "batch_bytes", "batch_delay_ms", "block_operations_max"];
    assert_eq!((names.len(), &names[..4]), (30, &first[..]));
    assert!(!names.contains(&"comparison"));
}

fn accepts(section: &Section, field: &str, value: Value) -> Result<(), String> {
    if section.name == AGREED {
        return accepts_agreed(field, value);
    }
    // A certificate and its key come together, and `http_tls` needs both.
    let (tls_cert, tls_key) = (Some("cert.pem".into()), Some("cert.key".into()));
    let config = NodeConfig { comparison: true, tls_cert, tls_key, ..with_address() };
    let mut table = local_table(&config);
    let place = match section.name {
        "" => &mut table,
        name => {
            let section = table.entry(name).or_insert_with(|| Table::new().into());
            section.as_table_mut().unwrap()
        }
    };
    place.insert(field.to_owned(), value);
    let config: NodeConfig =
        table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
    config.validate(Path::new("config.toml")).map_err(|error| error.to_string())
}

fn accepts_agreed(field: &str, value: Value) -> Result<(), String> {
    let table = Table::from_iter([(field.to_owned(), value)]);
    let agreed: AgreedSettings =
        table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
    let mut config = NodeConfig { comparison: true, ..config() };
    config.agree(&agreed).map_err(|error| error.to_string())?;
    config.validate(Path::new("config.toml")).map_err(|error| error.to_string())
}

#[test]
fn documented_ranges_are_those_that_are_checked() {
    let agreed = COMMITTEE.iter().filter(|section| section.name == AGREED);
    for section in CONFIG.iter().chain(agreed) {
        for field in section.fields {
            match field.kind {
                Kind::Number { min, max, rule, .. } => {
                    let number = |value: u64| Value::Integer(value.cast_signed());
                    let accepts = |value| accepts(section, field.name, number(value));
                    if rule.is_empty() {
                        accepts(min).unwrap();
                    }
                    if min > 0 {
                        let error = accepts(min - 1).unwrap_err();
                        assert!(error.contains(field.name), "{error}");
                    }
                    if max == NO_BOUND {
                        accepts(max).unwrap();
                        continue;
                    }
                    if rule.is_empty() {
                        accepts(max).unwrap();
                    }
                    let error = accepts(max + 1).unwrap_err();
                    assert!(error.contains(field.name), "{error}");
                }
                Kind::Choice(words) => {
                    for word in words {
                        accepts(section, field.name, Value::from(*word)).unwrap();
                    }
                    accepts(section, field.name, Value::from("nonsense")).unwrap_err();
                }
                Kind::Flag => {
                    accepts(section, field.name, Value::from(true)).unwrap();
                }
                Kind::Address => {
                    accepts(section, field.name, Value::from("127.0.0.1:1")).unwrap();
                    let error = accepts(section, field.name, Value::from("here")).unwrap_err();
                    assert!(error.contains(field.name), "{error}");
                }
                Kind::Path | Kind::Text | Kind::Hex => {
                    accepts(section, field.name, Value::from("name")).unwrap();
                }
                Kind::List => {
                    accepts(section, field.name, Value::Array(Vec::new())).unwrap();
                }
                Kind::Keys => {
                    let accepts = |key: &str| accepts(section, field.name, vec![key].into());
                    accepts(&IdentitySecret::from_seed([1; 32]).public().to_string()).unwrap();
                    let error = accepts("0a0b").unwrap_err();
                    assert!(error.contains(field.name) && error.contains("0a0b"), "{error}");
                }
            }
        }
    }
}

#[test]
fn required_fields_are_those_that_cannot_be_left_out() {
    for field in CONFIG.iter().flat_map(|section| section.fields) {
        let mut table = local_table(&config());
        table.remove(field.name);
        let required = table.try_into::<NodeConfig>().is_err();
        assert_eq!(required, field.default == FieldDefault::Required, "'{}'", field.name);
    }
}

#[test]
fn the_reference_in_the_documentation_is_current() {
    let page = include_str!("../../../../docs/CONFIG.md");
    assert!(
        page == reference(),
        "docs/CONFIG.md is out of date: cargo run -p quorate-cli -- config reference > docs/CONFIG.md"
    );
}

#[test]
fn no_line_of_the_template_is_wider_than_a_terminal() {
    for line in config().to_toml().lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_learner_needs_an_address_and_no_emulated_network() {
    let refused = |config: &NodeConfig| config.validate(Path::new("c")).unwrap_err().to_string();
    let learner = NodeConfig { learner: true, ..with_address() };
    learner.validate(Path::new("c")).unwrap();
    let lost = NodeConfig { listen: None, ..learner.clone() };
    assert!(refused(&lost).contains("set `listen`"));
    let emulated = NodeConfig { emulation: Some(Emulation::default()), ..learner };
    assert!(refused(&emulated).contains("remove the section [emulation]"));
    let key = IdentitySecret::from_seed([1; 32]).public().to_string();
    let crowd = NodeConfig { learners: vec![key; 65], ..config() };
    assert!(refused(&crowd).contains("at most 64"));
    let of_small_order = format!("01{}", "00".repeat(31));
    let anybody = NodeConfig { learners: vec![of_small_order], ..config() };
    assert!(refused(&anybody).contains("each is an identity key"));
}

/// Every agreed setting, away from its default.
fn unusual_settings() -> AgreedSettings {
    AgreedSettings {
        service: "kv".into(),
        genesis_digest: Some("0a".repeat(32)),
        execution_version: 2,
        clients: "listed".into(),
        protocol: "sbft".into(),
        leader_reputation: false,
        leader_tenure: 5,
        inline_bodies: true,
        availability: "certified".into(),
        execution_certificates: true,
        snapshot_every: 8,
        heartbeat_ms: 700,
        trusting_period_days: 9,
        clock_drift_max_ms: 7,
        proposal_key: "voting".into(),
        truncation: "heights".into(),
    }
}

/// One that [`NodeConfig::agree`] or the replica's settings forget fails here.
#[test]
fn each_setting_of_a_committee_file_reaches_the_configuration_and_the_replica() {
    let unusual = Table::try_from(unusual_settings()).unwrap();
    let usual = Table::try_from(AgreedSettings::default()).unwrap();
    for name in names::of::<AgreedSettings>() {
        let value = &unusual[*name];
        assert_ne!(Some(value), usual.get(*name), "'{name}' is at its default");
        let loaded = load_with(name, &format!("{name} = {value}"), "comparison = true").unwrap();
        let mut expected = usual.clone();
        expected.insert((*name).to_owned(), value.clone());
        assert_eq!(Table::try_from(loaded.agreed()).unwrap(), expected);
        let shown = Table::try_from(&loaded).unwrap();
        let replica = shown["replica"].as_table().unwrap();
        assert_eq!(replica.get(*name).or(shown.get(*name)), Some(value), "'{name}'");
        assert!(effective(&loaded).contains(&format!("\n{name} = {value}")), "'{name}'");
    }
}

#[test]
fn agreed_settings_are_refused_in_a_configuration_by_name() {
    let unusual = Table::try_from(unusual_settings()).unwrap();
    for (name, value) in &unusual {
        for (top, replica) in [
            (format!("{name} = {value}\n"), String::new()),
            (String::new(), format!("{name} = {value}\n")),
        ] {
            let (_place, path) = write(&format!("{PATHS}{top}[replica]\n{replica}"));
            let refused = NodeConfig::load(&path).unwrap_err().to_string();
            let said = format!(
                "{}: '{name}' is agreed by all members: it stands in [settings] of the committee file",
                path.display()
            );
            assert_eq!(refused, said);
        }
    }
}

#[test]
fn local_fields_are_refused_in_a_committee_file_by_name() {
    for section in CONFIG.iter().filter(|section| section.name != "emulation") {
        for field in section.fields {
            let (_place, path) = write_with(PATHS, &format!("{} = 1", field.name));
            let refused = NodeConfig::load(&path).unwrap_err().to_string();
            let place = match section.name {
                "" => "above all sections".to_owned(),
                name => format!("in the section [{name}]"),
            };
            let said = format!(
                "committee.toml, section [settings]: '{}' is each member's own: it stands in its \
                 configuration file, {place}",
                field.name
            );
            assert!(refused.ends_with(&said), "{refused}");
            let committee = path.parent().unwrap().join("../committee.toml");
            assert_eq!(read_committee_file(&committee).unwrap_err().to_string(), refused);
        }
    }
}

/// A name has one place, so that a refusal can say which.
#[test]
fn no_field_is_both_agreed_and_local() {
    for field in agreed_fields() {
        assert_eq!(local_section(field.name), None, "'{}'", field.name);
    }
}

#[test]
fn wrong_values_of_agreed_settings_name_the_committee_file() {
    for (line, said) in [
        ("protocol = \"paxos\"", "setting 'protocol': 'paxos' is no protocol: use 'jolteon' or"),
        ("clients = \"friends\"", "setting 'clients': 'friends' is none of 'open', 'listed'"),
        ("leader_tenure = 0", "setting 'leader_tenure' is 0; it must be 1 to 1000"),
    ] {
        let (_place, path) = write_with(PATHS, line);
        let refused = NodeConfig::load(&path).unwrap_err().to_string();
        let place = format!("committee.toml, section [settings]: {said}");
        assert!(refused.contains(&place), "{refused}");
    }
    let (_place, path) = write_with(PATHS, "service = \"\"");
    let refused = NodeConfig::load(&path).unwrap_err().to_string();
    assert!(refused.contains("committee.toml: 'service' is empty"), "{refused}");
    let (_place, path) = write_with(PATHS, "colour = \"green\"");
    let refused = NodeConfig::load(&path).unwrap_err().to_string();
    assert!(refused.contains("is not a valid committee file"), "{refused}");
    assert!(refused.contains("unknown field `colour`"), "{refused}");
}

/// What is left out is as good as its default, so that both name one network.
#[test]
fn a_committee_file_without_settings_has_the_defaults() {
    let text = |settings: &str| {
        let (place, _) = write_with("", settings);
        read_committee_file(&place.path().join("committee.toml")).unwrap()
    };
    let written = toml::to_string(&AgreedSettings::default()).unwrap();
    assert_eq!(text(&written), text(""));
    assert_eq!(text("").settings, AgreedSettings::default());
}

#[test]
fn members_have_the_genesis_file_that_they_agreed_on() {
    let genesis = "{}";
    let digest = genesis_digest("evm", genesis);
    let agreed = NodeConfig { genesis_digest: Some(digest.clone()), ..config() };
    agreed.check_genesis(genesis).unwrap();
    let refused = agreed.check_genesis("{ }").unwrap_err().to_string();
    assert!(refused.contains(&format!("'genesis_digest' is {digest}, and")), "{refused}");
    let refused = config().check_genesis(genesis).unwrap_err().to_string();
    assert!(refused.contains("'genesis_digest' is missing"), "{refused}");
    assert!(refused.ends_with(&format!("has the digest {digest}")), "{refused}");
}
