//! Members that lie, one behaviour at a time, under each protocol.

use quorate_engine::ProtocolKind;
use quorate_sim::byzantine::Behaviour;
use quorate_sim::{Scenario, run};
use std::fs;
use std::path::Path;

/// Nothing else goes wrong: what is seen is the liar's work.
fn lying(protocol: ProtocolKind, behaviour: Behaviour) -> Scenario {
    let mut scenario = Scenario::calm(1, 4).running(protocol);
    scenario.behaviours[3] = behaviour;
    scenario
}

#[test]
fn one_member_of_four_may_behave_in_any_way() {
    for protocol in ProtocolKind::ALL {
        for behaviour in Behaviour::all().filter(|behaviour| *behaviour != Behaviour::Twin) {
            let report = run(&lying(protocol, behaviour));
            let verdict = report.verdict.map_err(|failure| failure.to_string());
            assert_eq!(verdict, Ok(()), "{protocol}, {behaviour}");
            assert!(report.completed >= 40, "{protocol}, {behaviour}");
        }
    }
}

/// A flood that nobody notices floods nobody.
#[test]
fn floods_arrive() {
    for protocol in ProtocolKind::ALL {
        let noticed = |behaviour| run(&lying(protocol, behaviour)).reactions;
        let (honest, certificates) =
            (noticed(Behaviour::Honest), noticed(Behaviour::CertificateFlood));
        assert!(certificates.refused > honest.refused + 100, "{protocol}: {certificates:?}");
        for behaviour in [Behaviour::VoteFlood, Behaviour::ReplayFlood, Behaviour::TimeoutFlood] {
            let (flooded, idle) = (noticed(behaviour), &honest);
            let seen = flooded.ignored + flooded.refused;
            assert!(
                seen > idle.ignored + idle.refused + 20,
                "{protocol}, {behaviour}: {flooded:?}"
            );
        }
    }
}

#[test]
fn behaviours_have_names() {
    for behaviour in Behaviour::all() {
        assert_eq!(behaviour.to_string().parse(), Ok(behaviour));
    }
    let refused = "flood".parse::<Behaviour>().expect_err("no behaviour").to_string();
    assert!(refused.contains("certificate-flood"), "{refused}");
}

#[test]
fn the_table_has_every_behaviour() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/behaviours.md");
    let table = fs::read_to_string(path).expect("docs/behaviours.md");
    for behaviour in Behaviour::all() {
        assert!(table.contains(&format!("| `{behaviour}` |")), "{behaviour} is missing");
    }
}
