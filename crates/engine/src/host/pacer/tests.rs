use super::{EVERY, OF_HEIGHT, PACE_MAX, Pacer, pace};
use quorate_types::{Height, Time};
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Looks on and on at a thread that waits for this part of the time, while so many heights a second
/// are decided; returns the last pace.
fn settle(waited_percent: u32, heights: u64) -> Duration {
    let mut pacer = Pacer::default();
    let mut last = Duration::ZERO;
    for second in 0..60 {
        let waited = ms(second * 1_000) * waited_percent / 100;
        let decided = Height(heights * second);
        last = pacer.look(Time(second * 1_000_000), waited, decided).unwrap_or(last);
    }
    last
}

#[test]
fn the_pace_is_a_part_of_a_height_by_how_scarce_processors_are() {
    // Part of the time waited in per cent, heights a second, pace.
    let table = [
        (0, 100, ms(0)),
        (10, 20, ms(0)),
        (25, 20, ms(12)),
        (25, 50, ms(5)),
        (40, 20, ms(25)),
        (90, 20, ms(25)),
        // Half a height is no millisecond.
        (90, 1_000, ms(0)),
        // Heights that take this long are few.
        (90, 1, PACE_MAX),
    ];
    for (waited, heights, expected) in table {
        let paced = settle(waited, heights);
        let differs = paced.abs_diff(expected);
        assert!(differs <= ms(1), "{waited} %, {heights} a second: {paced:?}");
    }
}

#[test]
fn without_heights_there_is_no_pace() {
    assert_eq!((settle(0, 0), pace(0.9, 0.0)), (Duration::ZERO, Duration::ZERO));
}

/// A machine that was idle for a while has no pace, whatever was before.
#[test]
fn an_idle_time_ends_the_pace() {
    let mut pacer = Pacer::default();
    let second = |second: u64| Time(second * 1_000_000);
    assert_eq!(pacer.look(second(0), ms(0), Height(0)), None, "nothing to compare with");
    let pace = pacer.look(second(10), ms(5_000), Height(200)).expect("scarce");
    assert!(pace > ms(10), "{pace:?}");
    assert_eq!(pacer.look(second(300), ms(5_010), Height(203)), Some(Duration::ZERO));
    assert_eq!(pacer.look(second(301), ms(5_011), Height(203)), None, "as it was");
}

#[test]
fn it_looks_now_and_then() {
    let mut pacer = Pacer::default();
    assert!(pacer.is_due(Time(0)));
    assert_eq!(pacer.look(Time(0), ms(0), Height(0)), None);
    assert!(!pacer.is_due(Time(0) + EVERY - ms(1)) && pacer.is_due(Time(0) + EVERY));
}

/// A committee on one machine, simply: a height takes `alone` where nobody is in the way, and
/// `work` of processor time over all members; all else takes `other` processors.
#[derive(Clone, Copy, Debug)]
struct Committee {
    processors: f64,
    alone: f64,
    work: f64,
    other: f64,
    /// Part of the waiting in a height that is the machine thread's.
    share: f64,
}

impl Committee {
    /// Seconds from one height to the next under this pause, and the part of the time for which the
    /// thread waits: whatever shares a processor is slower by what others leave of it.
    fn run(&self, pause: f64) -> (f64, f64) {
        let height = |every: f64| {
            let load = (self.other + self.work / every) / self.processors;
            if load < 1.0 { self.alone / (1.0 - load) } else { f64::INFINITY }
        };
        let (mut short, mut long) = (pause, pause + 100.0);
        for _ in 0..100 {
            let every = f64::midpoint(short, long);
            if pause + height(every) > every { short = every } else { long = every }
        }
        (long, self.share * (height(long) - self.alone) / long)
    }

    /// Paces over a minute, from whatever was before.
    fn paces(&self, mut pacer: Pacer, mut pace: Duration) -> Vec<Duration> {
        let (mut at, mut waited, mut heights) = (1_000.0, 1_000.0, 1e6);
        let mut paces = Vec::new();
        for _ in 0..240 {
            let (every, part) = self.run(pace.as_secs_f64());
            let span = EVERY.as_secs_f64();
            (at, waited, heights) = (at + span, waited + part * span, heights + span / every);
            let look = pacer.look(
                Time((at * 1e6) as u64),
                Duration::from_secs_f64(waited),
                Height(heights as u64),
            );
            pace = look.unwrap_or(pace);
            paces.push(pace);
        }
        paces
    }
}

fn committees() -> impl Iterator<Item = Committee> {
    let works = [0.001, 0.005, 0.02, 0.07];
    let loads = [0.0, 0.5, 1.0, 1.5, 1.9];
    let alones = [0.002, 0.01, 0.04];
    let shares = [0.3, 0.6, 1.0];
    let all = works.into_iter().flat_map(move |work| loads.map(|other| (work, other)));
    let all = all.flat_map(move |(work, other)| alones.map(|alone| (work, other, alone)));
    all.flat_map(move |(work, other, alone)| {
        shares.map(|share| Committee { processors: 2.0, alone, work, other, share })
    })
}

/// The closed loop: a pause makes threads wait less, and the pace follows that. It settles, at the
/// same wherever it begins, and heights take twice as long as without at most.
#[test]
fn the_pace_settles() {
    for committee in committees() {
        let calm = committee.paces(Pacer::default(), Duration::ZERO);
        let mut upset = Pacer::default();
        upset.look(Time(0), ms(0), Height(0));
        let most = upset.look(Time(1_000_000_000), ms(990_000), Height(5_000));
        let upset = committee.paces(upset, most.expect("scarce"));
        for paces in [&calm, &upset] {
            let settled = &paces[160..];
            let (least, most) = (settled.iter().min(), settled.iter().max());
            let (least, most) = (*least.expect("some"), *most.expect("some"));
            // Heights are counted whole, which moves it a little where they are few.
            assert!(most - least <= ms(2).max(most / 6), "{committee:?}: {settled:?}");
        }
        let (ends, others) = (calm[239], upset[239]);
        assert!(ends.abs_diff(others) <= ms(2).max(ends / 6), "{committee:?}: {ends:?} {others:?}");
        let (without, _) = committee.run(0.0);
        let (with, _) = committee.run(ends.as_secs_f64());
        assert!(with <= without / (1.0 - OF_HEIGHT), "{committee:?}: {without} {with} {ends:?}");
    }
}

/// Where processors are free there is no pace, and where heights alone fill them there is one.
#[test]
fn the_pace_is_where_heights_wait_for_processors() {
    let ends = |committee: Committee| committee.paces(Pacer::default(), Duration::ZERO)[239];
    let free = Committee { processors: 2.0, alone: 0.04, work: 0.005, other: 0.2, share: 0.6 };
    assert_eq!(ends(free), Duration::ZERO);
    let full = Committee { alone: 0.01, work: 0.07, ..free };
    let pace = ends(full);
    let ((without, waited_without), (with, waited_with)) =
        (full.run(0.0), full.run(pace.as_secs_f64()));
    assert!(pace > ms(5) && waited_with < waited_without, "{pace:?}");
    assert!(with < 1.3 * without, "mostly what heights had waited anyway: {without} {with}");
}
