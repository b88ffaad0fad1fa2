//! Panel of a running bench, as lines of text.

use crate::bench::evidence::{Sample, ValidatorState};
use crate::load::{LoadConfig, Shape};
use crate::status::ValidatorStatus;
use console::{StyledObject, style};
use quorate_report::results::LatencyMs;
use quorate_report::text::{milliseconds, sparkline, thousands};

/// Largest number of events shown.
const EVENTS_MAX: usize = 4;

/// Widest panel, in columns: beyond that the eye loses the line.
const WIDTH_MAX: usize = 110;

/// Columns before a row's state: a validator's index and space around it.
const INDEX_COLUMNS: usize = 12;

/// Fewest and most columns of a row's state.
const STATE_COLUMNS: (usize, usize) = (12, 18);

/// Quantities of a row with their columns; where there is no room the last ones are left out.
const QUANTITIES: [(&str, usize); 4] =
    [("executed/s", 11), ("height", 10), ("CPU", 9), ("memory", 12)];

/// Columns around the bar: one before it, two between it and its note, one behind.
const BAR_MARGIN: usize = 4;

/// One state of the panel, in lines of at most `width` columns.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// Lines above the bar.
    pub(super) above: Vec<String>,
    /// Progress of the load; none before it and after it.
    pub(super) bar: Option<Bar>,
    /// Lines below the bar.
    pub(super) below: Vec<String>,
    /// Columns that lines may take.
    pub(super) width: usize,
}

/// Progress of the load.
#[derive(Debug)]
pub(super) struct Bar {
    /// Seconds since it began.
    pub(super) second: u64,
    /// Seconds that it takes.
    pub(super) span_s: u64,
    /// Length of the bar, in columns.
    pub(super) columns: usize,
    /// Time that is left, in words.
    pub(super) note: String,
}

/// Everything that the panel shows.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Stage that the bench waits in, if any.
    pub(super) stage: Option<String>,
    title: String,
    warmup_s: u64,
    span_s: u64,
    second: u64,
    /// Offered load in words.
    offered: String,
    /// Operations offered per second, unless that depends on the answers.
    rate: Option<u64>,
    /// Operations that the slowest executed, each second; those answered where no validator is
    /// looked at.
    committed: Vec<f64>,
    /// Median latency, each second.
    medians_ms: Vec<f64>,
    latency: LatencyMs,
    view: u64,
    members: Vec<Member>,
    events: Vec<(f64, String)>,
}

/// Row of one validator.
#[derive(Clone, Debug)]
struct Member {
    id: usize,
    state: String,
    well: bool,
    rate: Option<u64>,
    height: Option<u64>,
    cpu_cores: Option<f64>,
    rss_mb: Option<f64>,
}

impl State {
    pub(super) fn begin(&mut self, title: String, load: &LoadConfig) {
        self.stage = None;
        self.title = title;
        self.offered = load.offered();
        self.rate = (load.shape != Shape::Closed).then_some(load.rate);
        self.warmup_s = load.warmup_s;
        self.span_s = load.span().as_secs();
    }

    pub(super) fn second(&self) -> u64 {
        self.second
    }

    pub(super) fn note(&mut self, at_s: f64, what: String) {
        self.events.push((at_s, what));
    }

    /// Takes in the last second.
    pub(super) fn take_in(&mut self, samples: &[Sample], states: &[ValidatorState]) {
        let [.., before, now] = samples else { return };
        self.second = now.second;
        self.latency = now.lately;
        self.view = now.looks.iter().flatten().map(|status| status.view).max().unwrap_or(0);
        self.members =
            states.iter().enumerate().map(|(id, f)| member(id, f, before, now)).collect();
        let running = self.members.iter().filter(|member| member.well);
        let slowest = running.filter_map(|member| member.rate).min();
        let answered = now.answered.saturating_sub(before.answered);
        let rate = if self.members.is_empty() { answered } else { slowest.unwrap_or(0) };
        self.committed.push(rate as f64);
        self.medians_ms.push(now.lately.p50);
        let changes = view_changes(before, now);
        if changes > 0 {
            let plural = if changes == 1 { "" } else { "s" };
            let at_s = now.second as f64 - self.warmup_s as f64;
            self.note(at_s, format!("{changes} view change{plural} in the last second"));
        }
    }

    /// One line for a log; `None` before there is anything to say.
    pub(super) fn line(&self) -> Option<String> {
        let committed = thousands(*self.committed.last()? as u64);
        Some(format!(
            "{:>5} s  offered {} · {} {committed}/s · p50 {} ms · p99 {} ms{}{}",
            self.second as i64 - self.warmup_s as i64,
            self.offered,
            self.counted(),
            milliseconds(self.latency.p50),
            milliseconds(self.latency.p99),
            self.views(),
            if self.second <= self.warmup_s { " · warm-up" } else { "" },
        ))
    }

    /// What the rate is a rate of.
    fn counted(&self) -> &'static str {
        if self.members.is_empty() { "answered" } else { "committed" }
    }

    /// The view, where validators are looked at.
    fn views(&self) -> String {
        let view = thousands(self.view);
        if self.members.is_empty() { String::new() } else { format!(" · view {view}") }
    }

    /// The panel, for so many columns and rows.
    pub(super) fn frame(&self, width: usize, height: usize) -> Frame {
        let width = width.min(WIDTH_MAX);
        let stage = self.stage.iter().map(|stage| format!(" {} {stage}", dim("·")));
        if self.committed.is_empty() {
            return Frame { above: stage.collect(), width, ..Frame::default() };
        }
        let above: Vec<String> = std::iter::once(self.head(width)).chain(stage).collect();
        let mut below = vec![String::new()];
        below.extend(self.rates(width));
        below.push(String::new());
        let events = self.last_events();
        let room = height.saturating_sub(below.len() + 3 + events.len() + 2);
        if !self.members.is_empty() {
            below.extend(self.rows(&Columns::fitting(width), room));
        }
        if !events.is_empty() {
            below.push(String::new());
            below.extend(events);
        }
        Frame { above, bar: self.bar(width), below, width }
    }

    fn head(&self, width: usize) -> String {
        let left = format!(" {}", self.title);
        let right = match self.second as i64 - self.warmup_s as i64 {
            ..=0 => "warm-up ".to_owned(),
            second => format!("{second} s of {} s ", self.span_s - self.warmup_s),
        };
        spread(&left, &right, width, |left| style(left).for_stderr().bold())
    }

    fn bar(&self, width: usize) -> Option<Bar> {
        let left_s = self.span_s.saturating_sub(self.second);
        let note = if left_s > 0 { format!("{left_s} s left") } else { String::new() };
        let columns = width.saturating_sub(note.len() + BAR_MARGIN);
        let Self { second, span_s, .. } = *self;
        self.stage.is_none().then_some(Bar { second, span_s, columns, note })
    }

    fn rates(&self, width: usize) -> [String; 3] {
        let room = width.saturating_sub(36);
        let recent = |values: &[f64]| {
            let from = values.len().saturating_sub(room);
            sparkline(values[from..].iter().copied())
        };
        let committed = self.committed.last().copied().unwrap_or(0.0);
        let kept_up = self.rate.is_none_or(|rate| committed >= 0.9 * rate as f64);
        let shown = format!("{:>9} tx/s", thousands(committed as u64));
        let shown = style(shown).for_stderr().bold();
        let shown = if kept_up { shown.green() } else { shown.yellow() };
        let latency = self.latency;
        [
            format!(
                " {:<9} {shown}  {}",
                self.counted(),
                style(recent(&self.committed)).for_stderr().cyan()
            ),
            format!(
                " median    {:>9} ms    {}",
                milliseconds(latency.p50),
                style(recent(&self.medians_ms)).for_stderr().magenta()
            ),
            dim(&format!(
                " offered {} · p90 {} ms · p99 {} · max {}{}",
                self.offered,
                milliseconds(latency.p90),
                milliseconds(latency.p99),
                milliseconds(latency.max),
                self.views(),
            ))
            .to_string(),
        ]
    }

    /// Heading and rows; where there is no room for all, those that are not well, then the slowest.
    fn rows(&self, columns: &Columns, room: usize) -> Vec<String> {
        let names = QUANTITIES.map(|(name, _)| name.to_owned());
        let heading = format!(
            " {:>9}  {:<2$}{3}",
            "validator",
            "state",
            columns.state,
            columns.quantities(&names)
        );
        let mut lines = vec![dim(&heading).to_string()];
        let mut members: Vec<&Member> = self.members.iter().collect();
        let hidden = members.len().saturating_sub(room.max(2));
        if hidden > 0 {
            members.sort_by_key(|member| (member.well, member.rate, member.id));
            members.truncate(room.max(2) - 1);
        }
        lines.extend(members.into_iter().map(|member| member.line(columns)));
        if hidden > 0 {
            lines.push(dim(&format!("            … and {} more, faster", hidden + 1)).to_string());
        }
        lines
    }

    fn last_events(&self) -> Vec<String> {
        let from = self.events.len().saturating_sub(EVENTS_MAX);
        let line =
            |(at_s, what): &(f64, String)| format!(" {} {what}", dim(&format!("{at_s:>7.1} s")));
        self.events[from..].iter().map(line).collect()
    }
}

/// Layout of the validators' rows.
struct Columns {
    /// Columns of the state.
    state: usize,
    /// Number of quantities that there is room for.
    shown: usize,
}

impl Columns {
    fn fitting(width: usize) -> Self {
        let (least, most) = STATE_COLUMNS;
        let taken = |shown: usize| {
            INDEX_COLUMNS + QUANTITIES[..shown].iter().map(|(_, columns)| columns).sum::<usize>()
        };
        let fits = |shown: &usize| taken(*shown) + least <= width;
        let shown = (1..=QUANTITIES.len()).rev().find(fits).unwrap_or(1);
        Self { state: width.saturating_sub(taken(shown)).clamp(least, most), shown }
    }

    /// The quantities of a row that there is room for.
    fn quantities(&self, texts: &[String; QUANTITIES.len()]) -> String {
        let pairs = texts.iter().zip(QUANTITIES).take(self.shown);
        pairs.map(|(text, (_, columns))| format!("{text:>columns$}")).collect()
    }
}

impl Member {
    fn line(&self, columns: &Columns) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let state = style(format!("{:<1$}", self.state, columns.state)).for_stderr();
        let state = if self.well { state.green() } else { state.red() };
        let quantities = columns.quantities(&[
            or_dash(self.rate.map(thousands)),
            or_dash(self.height.map(thousands)),
            or_dash(self.cpu_cores.map(|cores| format!("{:.0} %", 100.0 * cores))),
            or_dash(self.rss_mb.map(|mb| format!("{mb:.0} MiB"))),
        ]);
        format!(" {:>9}  {state}{quantities}", self.id)
    }
}

fn member(id: usize, state: &ValidatorState, before: &Sample, now: &Sample) -> Member {
    let (was, is) = (before.looks[id].as_ref(), now.looks[id].as_ref());
    let span_s = was.zip(is).and_then(|(was, is)| {
        let span = is.at?.saturating_duration_since(was.at?).as_secs_f64();
        (span > 0.0).then_some(span)
    });
    let grown = |value: fn(&ValidatorStatus) -> Option<f64>| {
        let grown = value(is?)? - value(was?)?;
        Some((grown / span_s?).max(0.0))
    };
    let (name, since_s) = state.describe();
    let alive = is.is_some();
    let state = match (since_s, alive) {
        (Some(second), _) => format!("{name} at {second} s"),
        (None, true) => "running".to_owned(),
        (None, false) => "silent".to_owned(),
    };
    let syncing = is.is_some_and(|status| status.syncing);
    Member {
        id,
        state: if syncing { "catching up".to_owned() } else { state },
        well: alive && !syncing,
        rate: grown(|status| Some(status.operations as f64)).map(|rate| rate.round() as u64),
        height: is.map(|status| status.executed),
        cpu_cores: grown(|status| status.cpu_seconds),
        rss_mb: is.and_then(|status| status.rss_mb),
    }
}

/// Views that timed out between two looks, at the validator that saw most.
fn view_changes(before: &Sample, now: &Sample) -> u64 {
    let pairs = before.looks.iter().zip(&now.looks);
    let both = pairs.filter_map(|(was, is)| Some((was.as_ref()?, is.as_ref()?)));
    both.map(|(was, is)| is.view_changes.saturating_sub(was.view_changes)).max().unwrap_or(0)
}

fn dim(text: &str) -> StyledObject<String> {
    style(text.to_owned()).for_stderr().dim()
}

/// One text at the left edge and one at the right.
fn spread(
    left: &str,
    right: &str,
    width: usize,
    paint: impl Fn(String) -> StyledObject<String>,
) -> String {
    let gap = width.saturating_sub(left.chars().count() + right.chars().count()).max(1);
    format!("{}{}{right}", paint(left.to_owned()), " ".repeat(gap))
}

#[cfg(test)]
mod tests;
