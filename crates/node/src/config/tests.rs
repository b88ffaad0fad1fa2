use super::template::{EMULATION, LOG, NODE, REPLICA};
use super::*;

fn config() -> NodeConfig {
    NodeConfig::new("../committee.toml".into(), "key.toml".into(), "data".into())
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
    config.listen = Some("0.0.0.0:1".into());
    config.emulation =
        Some(Emulation { regions: vec!["us-east-1".into()], ..Emulation::default() });
    assert_eq!(toml::from_str::<NodeConfig>(&config.to_toml()).unwrap(), config);
}

#[test]
fn every_field_has_a_comment_and_every_comment_a_field() {
    let mut config = config();
    config.listen = Some("0.0.0.0:1".into());
    config.emulation = Some(Emulation::default());
    let table = toml::Table::try_from(&config).unwrap();
    let names = |table: &toml::Table| -> Vec<String> {
        table.iter().filter(|(_, value)| !value.is_table()).map(|(key, _)| key.clone()).collect()
    };
    for (values, comments) in [
        (&table, NODE),
        (table["log"].as_table().unwrap(), LOG),
        (table["replica"].as_table().unwrap(), REPLICA),
        (table["emulation"].as_table().unwrap(), EMULATION),
    ] {
        let mut explained: Vec<_> = comments.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut present = names(values);
        explained.sort();
        present.sort();
        assert_eq!(explained, present);
    }
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
