//! Stand-ins for signatures are for simulations: nothing that a validator runs begins them.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn only_simulators_begin_them() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut users = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        let begins = |file: &PathBuf| fs::read_to_string(file).unwrap().contains("StandIns");
        if files.iter().any(begins) {
            users.push(folder.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    users.sort();
    assert_eq!(users, ["crypto", "model", "sim"]);
}
