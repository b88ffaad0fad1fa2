use super::*;
use quorate_wan::Matrix;

const REGIONS: [&str; 4] = ["us-east-1", "us-west-1", "ap-southeast-2", "eu-central-1"];

fn wide(validators: usize) -> Topology {
    let matrix = Matrix::aws();
    let regions = REGIONS.map(|name| matrix.region(name).unwrap());
    Topology::in_regions(matrix, &regions, validators)
}

fn scene(validators: usize, rate: f64) -> Scene {
    let prices = Prices::shipped("this-machine").unwrap();
    let mut scene = Scene::new(wide(validators), rate, prices);
    scene.warmup = Duration::from_secs(2);
    scene.duration = Duration::from_secs(3);
    scene
}

fn outcome(scene: &Scene) -> Outcome {
    run(scene, &mut |_| {}).unwrap()
}

#[test]
fn four_validators_on_four_continents_commit_what_is_offered() {
    let outcome = outcome(&scene(4, 2_000.0));
    assert!((1_900.0..=2_100.0).contains(&outcome.committed_tps), "{outcome:#?}");
    let latency = outcome.one_validator.p50_ms;
    assert!((200.0..=900.0).contains(&latency), "{outcome:#?}");
    assert!(outcome.first_validator.p50_ms <= latency);
    assert!(outcome.slowest_validator.p50_ms >= latency);
    assert!(outcome.acknowledged.p50_ms >= outcome.first_validator.p50_ms);
    assert_eq!((outcome.timeouts, outcome.refused, outcome.dropped), (0, 0, 0));
}
