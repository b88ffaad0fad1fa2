use super::{Axis, Kind};

fn texts(axis: &Axis, count: usize) -> Vec<String> {
    axis.ticks(count).into_iter().map(|tick| tick.1).collect()
}

#[test]
fn linear_ticks_are_round_numbers() {
    let axis = Axis::exact("a (b)", "b", Kind::Linear, -2.0, 20.0);
    assert_eq!(texts(&axis, 6), ["0", "5", "10", "15", "20"]);
    let axis = Axis::exact("a (b)", "b", Kind::Linear, -2.0, 2.0);
    assert_eq!(texts(&axis, 4), ["−2", "−1", "0", "1", "2"]);
    let axis = Axis::from_zero("a (b)", "b", [21_000.0].into_iter());
    assert_eq!(texts(&axis, 5), ["0", "5,000", "10,000", "15,000", "20,000"]);
    let axis = Axis::from_zero("a (b)", "b", [0.9].into_iter());
    assert_eq!(texts(&axis, 5), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
}

#[test]
fn logarithmic_ticks_get_fewer_as_the_range_grows() {
    let axis = |low, high| Axis::exact("latency (ms)", "ms", Kind::Log, low, high);
    assert_eq!(texts(&axis(8.0, 120.0), 6), ["10", "20", "50", "100"]);
    assert_eq!(texts(&axis(0.5, 5_000.0), 5), ["1", "10", "100", "1,000"]);
    assert_eq!(texts(&axis(0.04, 2.0), 6), ["0.05", "0.1", "0.2", "0.5", "1", "2"]);
}

#[test]
fn tails_are_evenly_spaced() {
    let axis = Axis::exact("share", "", Kind::Tail, 0.0, 0.999);
    let share = |value| (axis.share(value) * 3.0 * 1e6).round() / 1e6;
    assert_eq!([share(0.0), share(0.9), share(0.99), share(0.999)], [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(texts(&axis, 9), ["0 %", "50 %", "90 %", "99 %", "99.9 %"]);
}

#[test]
fn nothing_to_show_is_no_division_by_zero() {
    for axis in [
        Axis::from_zero("a (b)", "b", std::iter::empty()),
        Axis::from_zero("a (b)", "b", [f64::NAN, f64::INFINITY].into_iter()),
        Axis::log("a (b)", "b", std::iter::empty()),
        Axis::log("a (b)", "b", [0.0, -1.0].into_iter()),
        Axis::exact("a (b)", "b", Kind::Linear, 3.0, 3.0),
        Axis::exact("a (b)", "b", Kind::Log, 0.0, 3.0),
    ] {
        assert!(axis.low < axis.high, "{axis:?}");
        assert!(!axis.ticks(5).is_empty(), "{axis:?}");
        for value in [0.0, -5.0, 1e12, f64::NAN, f64::INFINITY] {
            assert!((0.0..=1.0).contains(&axis.share(value)), "{axis:?} {value}");
        }
    }
}

#[test]
fn one_value_still_spans_a_decade() {
    let axis = Axis::log("latency (ms)", "ms", [20.0].into_iter());
    assert!(axis.high / axis.low >= 10.0, "{axis:?}");
    assert!(axis.share(20.0) > 0.4 && axis.share(20.0) < 0.6);
}
