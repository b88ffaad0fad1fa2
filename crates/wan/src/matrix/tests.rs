use super::{Matrix, edits};

#[test]
fn the_measurements_are_complete() {
    let matrix = Matrix::aws();
    assert_eq!(matrix.names().len(), 33);
    let region = |name| matrix.region(name).expect("known");
    let trip = matrix.round_trip(region("us-east-1"), region("us-west-1"));
    assert_eq!((trip.p50_ms, trip.p90_ms), (64.16, 74.18));
    let within = matrix.round_trip(region("af-south-1"), region("af-south-1"));
    assert_eq!((within.p50_ms, within.p90_ms), (4.46, 11.91));
    for from in matrix.names() {
        for to in matrix.names() {
            let trip = matrix.round_trip(region(from), region(to));
            assert!(trip.p50_ms > 0.0 && trip.p90_ms >= trip.p50_ms, "{from} to {to}: {trip:?}");
        }
    }
}

#[test]
fn an_unknown_region_is_told_its_neighbours() {
    let error = Matrix::aws().region("us-eats-1").expect_err("no such region").to_string();
    assert_eq!(
        error,
        "there is no region 'us-eats-1'; near it are us-east-1, us-east-2, us-west-1"
    );
}

#[test]
fn a_matrix_with_a_hole_is_refused() {
    let heading = "from,to,p50_ms,p90_ms\n";
    let full = format!("{heading}a,a,1,2\na,b,3,4\nb,a,5,6\nb,b,7,8\n");
    let matrix = Matrix::parse(&full).expect("complete");
    let region = |name| matrix.region(name).expect("known");
    assert_eq!(matrix.round_trip(region("b"), region("a")).p50_ms, 5.0);
    assert_eq!(Matrix::parse(&format!("{heading}a,a,1,2\na,b,3,4\nb,b,7,8\n")), None);
    assert_eq!(Matrix::parse(&format!("{heading}a,a,1\n")), None);
}

#[test]
fn edits_are_counted() {
    assert_eq!((edits("", "abc"), edits("abc", "abc"), edits("kitten", "sitting")), (3, 0, 3));
}
