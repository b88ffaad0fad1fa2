use super::{Look, Quietness, Seen, Ticks};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const STAT: &str = "cpu  1000 20 300 5000 60 7 8 90 11 12\ncpu0 1 2 3 4 5 6 7 8 9 10\n";

#[test]
fn ticks_are_read_from_the_machine_s_line() {
    let ticks = Ticks::parse(STAT, 42).expect("a line");
    assert_eq!(ticks, Ticks { all: 6_485, busy: 1_320, steal: 90, own: 42 });
    assert_eq!(Ticks::parse("intr 1 2 3\n", 0), None);
    assert_eq!(Ticks::parse("cpu  1 2 three\n", 0), None);
}

#[test]
fn what_is_not_ours_is_of_others() {
    let from = Ticks { all: 1_000, busy: 100, steal: 10, own: 50 };
    let to = Ticks { all: 1_200, busy: 250, steal: 16, own: 180 };
    assert_eq!(Ticks::shares(from, to), Some((0.1, 0.03)));
    let rounded = Ticks { own: 210, ..to };
    assert_eq!(Ticks::shares(from, rounded), Some((0.0, 0.03)), "ticks are rounded");
    assert_eq!(Ticks::shares(from, from), None, "no time, no share");
}

fn quiet() -> Seen {
    Seen {
        others_share: Some(0.01),
        steal_share: Some(0.0),
        sync_p50_ms: Some(2.0),
        sync_max_ms: Some(9.0),
    }
}

#[test]
fn a_quiet_machine_has_no_disturbances() {
    let before = quiet();
    let during = Seen { sync_p50_ms: Some(80.0), others_share: Some(0.08), ..before };
    let both = Quietness { before, during };
    assert!(
        both.disturbances(Some(1.5)).is_empty(),
        "what is measured may use the disk, and the kernel for it"
    );
    assert!(
        Quietness::default().disturbances(None).is_empty(),
        "nothing is known, nothing is said"
    );
}

#[test]
fn each_disturbance_is_named_with_its_moment() {
    let before = Seen { others_share: Some(0.12), sync_p50_ms: Some(9.0), ..quiet() };
    let during = Seen { steal_share: Some(0.04), ..quiet() };
    let said = Quietness { before, during }.disturbances(Some(2.0));
    assert_eq!(
        said,
        [
            "before it others used 12 % of the processors",
            "during it the host kept 4 % of the processors",
            "before it a synced write took 9.0 ms, and 2.0 at another time",
        ]
    );
}

#[test]
fn a_quick_disk_may_be_a_millisecond_slower() {
    let slower = |ms| Seen { sync_p50_ms: Some(ms), ..quiet() };
    let said = |ms| Quietness { before: slower(ms), during: quiet() }.disturbances(Some(0.1));
    assert!(said(1.0).is_empty());
    assert_eq!(said(1.2).len(), 1);
}

/// A child that was waited for is ours, whatever it used.
#[test]
fn a_look_ends_with_shares_and_syncs() {
    let folder = tempfile::tempdir().expect("a folder");
    let look = Look::begin(folder.path(), Duration::from_millis(20)).expect("a look");
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    assert!(Command::new("sh").args(["-c", script]).status().expect("sh runs").success());
    std::thread::sleep(Duration::from_millis(200));
    let seen = look.end();
    for share in [seen.others_share, seen.steal_share] {
        assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{seen:?}");
    }
    assert!(seen.sync_p50_ms <= seen.sync_max_ms && seen.sync_max_ms.is_some(), "{seen:?}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    let nowhere = Look::begin(Path::new("/nowhere/at/all"), Duration::from_secs(1));
    assert_eq!(nowhere.expect_err("no folder").kind(), std::io::ErrorKind::NotFound);
}
