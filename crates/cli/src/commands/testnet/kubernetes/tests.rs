use super::bases::{BASES, POD};
use super::names::{image, label, name, namespace, split_image, storage};
use super::*;
use std::collections::BTreeSet;

#[test]
fn as_many_may_be_away_as_weigh_no_more_than_may_be_faulty() {
    for (members, away) in [(1, 0), (3, 0), (4, 1), (7, 2), (10, 3)] {
        assert_eq!(away_max(&Weights::equal(members)), away, "{members}");
    }
    // Six votes, of which one may be faulty: the heaviest has three.
    assert_eq!(away_max(&"3,1,1,1".parse().unwrap()), 0);
    // Ten votes, and three may be faulty: the two heaviest weigh four.
    assert_eq!(away_max(&"2,2,2,1,1,1,1".parse().unwrap()), 1);
}

#[test]
fn names_are_those_that_a_cluster_takes() {
    assert!(namespace("settlement-2").is_ok() && name("premium-rwo.v1").is_ok());
    for wrong in ["", "-a", "a-", "A", "a_b", "a.b", &"a".repeat(64)] {
        assert!(namespace(wrong).is_err(), "{wrong}");
    }
    assert!(label("EU_west.1").is_ok() && label("eu west").is_err());
    assert!(image("registry:5000/team/quorate@sha256:00ff").is_ok());
    assert!(image("quorate\n  evil: yes").is_err() && image("\"quorate\"").is_err());
    assert!(storage("20Gi").is_ok() && storage("1T").is_ok());
    for wrong in ["20", "Gi", "0Gi", "1.5Gi", "20 Gi", "20GB"] {
        assert!(storage(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_image_has_a_name_a_tag_and_a_digest() {
    assert_eq!(split_image("quorate"), ("quorate", None, None));
    assert_eq!(split_image("quorate:v1"), ("quorate", Some("v1"), None));
    assert_eq!(split_image("registry:5000/quorate"), ("registry:5000/quorate", None, None));
    let whole = "registry:5000/quorate:v1@sha256:00ff";
    assert_eq!(split_image(whole), ("registry:5000/quorate", Some("v1"), Some("sha256:00ff")));
}

/// Whoever adds a file to a base adds it to what the program carries.
#[test]
fn no_file_of_a_base_is_left_out() {
    let packaging = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/kubernetes"));
    let carried: BTreeSet<&str> = BASES.iter().map(|(path, _)| *path).collect();
    let folders: BTreeSet<&Path> =
        BASES.iter().filter_map(|(path, _)| Path::new(path).parent()).collect();
    for folder in folders {
        for entry in fs::read_dir(packaging.join(folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            assert!(carried.contains(path.to_str().unwrap()), "{path:?}");
        }
    }
    assert!(POD.contains("{{NAME}}") && POD.contains("{{MOUNTS}}\n"));
}
