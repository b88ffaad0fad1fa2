use super::fields::{COMMITTEE, CONFIG, FieldDefault, Kind, NO_BOUND, Section};
use super::*;
use quorate_crypto::IdentitySecret;
use quorate_types::{Groups, Member};

fn config() -> NodeConfig {
    NodeConfig::new("../committee.toml".into(), "key.toml".into(), "data".into())
}

/// One that may be a learner's too.
fn with_address() -> NodeConfig {
    NodeConfig { listen: Some("127.0.0.1:7000".into()), ..config() }
}

fn write(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    (folder, path)
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
    let (folder, path) = write(&config().to_toml());
    let loaded = NodeConfig::load(&path).unwrap();
    assert_eq!(loaded.key, folder.path().join("key.toml"));
    assert_eq!(loaded.data_dir, folder.path().join("data"));
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
    assert_eq!(documented(&CONFIG[2]), sorted(names::of::<Settings>()));
    assert_eq!(documented(&CONFIG[3]), sorted(names::of::<Emulation>()));
    assert_eq!(CONFIG.len(), 4, "compare the new section with its struct here");
    assert_eq!(documented(&COMMITTEE[0]), sorted(names::of::<CommitteeFile>()));
    assert_eq!(documented(&COMMITTEE[1]), sorted(names::of::<Groups>()));
    assert_eq!(documented(&COMMITTEE[2]), sorted(names::of::<Member>()));
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
    let table = toml::Table::try_from(complete).unwrap();
    for (name, value) in &table {
        let known = CONFIG.iter().any(|section| section.name == name);
        assert_eq!(value.is_table(), known, "section [{name}]");
    }
    let names = table.iter().filter(|(_, value)| value.is_table()).count();
    assert_eq!(names, CONFIG.len() - 1, "a section that is optional is to be set above");
}

/// Loads a file with these lines, in [replica] and above all sections.
fn load_with(replica: &str, top: &str) -> Result<NodeConfig, String> {
    let paths = "committee = \"../committee.toml\"\nkey = \"key.toml\"\ndata_dir = \"data\"\n";
    let (_folder, path) = write(&format!("{paths}{top}\n[replica]\n{replica}\n"));
    NodeConfig::load(&path).map_err(|error| error.to_string())
}

/// Every setting for comparisons: at its default, and away from it.
const FOR_COMPARISONS: [(&str, &str, &str); 8] = [
    ("block_operations_max", "0", "600"),
    ("filter_requests", "true", "false"),
    ("key_cache", "\"on\"", "\"subtract\""),
    ("proposal_key", "\"identity\"", "\"voting\""),
    ("vote_salvage", "true", "false"),
    ("truncation", "\"ids\"", "\"heights\""),
    ("signatures", "true", "false"),
    ("flow_control", "\"delay\"", "\"fixed\""),
];

#[test]
fn a_validator_refuses_settings_for_comparisons_by_name() {
    for (name, usual, away) in FOR_COMPARISONS {
        assert_eq!(
            load_with(&format!("{name} = {usual}"), "").unwrap().replica,
            Settings::default()
        );
        let error = load_with(&format!("{name} = {away}"), "").unwrap_err();
        let said = format!(
            "section [replica]: '{name}' is for comparisons with papers, in `quorate bench`, \
             `quorate sim` and the laboratory; a validator takes its default alone: remove it"
        );
        assert!(error.ends_with(&said), "{error}");
    }
}

#[test]
fn a_benchs_file_takes_settings_for_comparisons_but_for_missing_signatures() {
    for (name, _, away) in FOR_COMPARISONS {
        let loaded = load_with(&format!("{name} = {away}"), "comparison = true");
        if name == "signatures" {
            assert!(loaded.unwrap_err().contains("only simulated replicas go without"));
        } else {
            assert_eq!(loaded.unwrap().replica.comparison.departures(), [name]);
        }
    }
}

#[test]
fn settings_for_comparisons_are_those_that_are_documented_so() {
    let fields = CONFIG.iter().flat_map(|section| section.fields);
    let documented = fields.filter(|field| field.for_comparisons).map(|field| field.name);
    assert!(documented.eq(FOR_COMPARISONS.map(|(name, ..)| name)));
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
    assert!(
        !toml::Table::try_from(Settings::default()).unwrap().values().any(toml::Value::is_table)
    );
    let first = ["protocol", "batch_bytes", "batch_delay_ms", "block_operations_max"];
    assert_eq!((names.len(), &names[..4]), (26, &first[..]));
    assert!(!names.contains(&"comparison"));
}

fn accepts(section: &Section, field: &str, value: toml::Value) -> Result<(), String> {
    // A certificate and its key come together, and `http_tls` needs both.
    let (tls_cert, tls_key) = (Some("cert.pem".into()), Some("cert.key".into()));
    let config = NodeConfig { comparison: true, tls_cert, tls_key, ..with_address() };
    let mut table = toml::Table::try_from(config).unwrap();
    let place = match section.name {
        "" => &mut table,
        name => {
            let section = table.entry(name).or_insert_with(|| toml::Table::new().into());
            section.as_table_mut().unwrap()
        }
    };
    place.insert(field.to_owned(), value);
    let config: NodeConfig =
        table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
    config.validate(Path::new("config.toml")).map_err(|error| error.to_string())
}

#[test]
fn documented_ranges_are_those_that_are_checked() {
    for section in CONFIG {
        for field in section.fields {
            match field.kind {
                Kind::Number { min, max, rule, .. } => {
                    let number = |value: u64| toml::Value::Integer(value.cast_signed());
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
                        accepts(section, field.name, toml::Value::from(*word)).unwrap();
                    }
                    accepts(section, field.name, toml::Value::from("nonsense")).unwrap_err();
                }
                Kind::Flag => {
                    accepts(section, field.name, toml::Value::from(true)).unwrap();
                }
                Kind::Address => {
                    accepts(section, field.name, toml::Value::from("127.0.0.1:1")).unwrap();
                    let error =
                        accepts(section, field.name, toml::Value::from("here")).unwrap_err();
                    assert!(error.contains(field.name), "{error}");
                }
                Kind::Path | Kind::Text => {
                    accepts(section, field.name, toml::Value::from("name")).unwrap();
                }
                Kind::List => {
                    accepts(section, field.name, toml::Value::Array(Vec::new())).unwrap();
                }
                Kind::Keys => {
                    let accepts = |key: &str| accepts(section, field.name, vec![key].into());
                    accepts(&IdentitySecret::from_seed([1; 32]).public().to_string()).unwrap();
                    let error = accepts("0a0b").unwrap_err();
                    assert!(error.contains(field.name) && error.contains("0a0b"), "{error}");
                }
                Kind::Hex => panic!("'{}': no such kind in a configuration", field.name),
            }
        }
    }
}

#[test]
fn required_fields_are_those_that_cannot_be_left_out() {
    for field in CONFIG.iter().flat_map(|section| section.fields) {
        let mut table = toml::Table::try_from(config()).unwrap();
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
