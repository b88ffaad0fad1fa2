//! What is shown of a running bench, as lines of text.

use crate::bench::config::BenchConfig;
use crate::bench::evidence::{Fortune, Sample};
use crate::bench::latencies::LatencyMs;
use crate::bench::load::Shape;
use crate::status::ValidatorStatus;
use crate::text::{milliseconds, sparkline, thousands};
use console::{StyledObject, style};

/// Most events shown.
const EVENTS_MAX: usize = 4;

/// Widest panel, in columns: beyond that the eye loses the line.
const WIDTH_MAX: usize = 110;

/// Everything that the panel shows.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What is being waited for, while it is.
    pub(super) stage: Option<String>,
    title: String,
    warmup_s: u64,
    span_s: u64,
    second: u64,
    /// What is offered, in words.
    offered: String,
    /// Operations offered per second, unless that depends on the answers.
    rate: Option<u64>,
    /// Operations that the slowest executed, each second.
    committed: Vec<f64>,
    /// Median latency, each second.
    medians_ms: Vec<f64>,
    latency: LatencyMs,
    view: u64,
    members: Vec<Member>,
    events: Vec<(f64, String)>,
}

/// One validator's row.
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
    pub(super) fn begin(&mut self, config: &BenchConfig) {
        self.stage = None;
        self.title =
            format!("{} validators · {} · {}", config.validators, config.scheme, config.durability);
        self.offered = config.offered();
        self.rate = (config.load != Shape::Closed).then_some(config.rate);
        self.warmup_s = config.warmup_s;
        self.span_s = config.load_span().as_secs();
    }

    pub(super) fn second(&self) -> u64 {
        self.second
    }

    pub(super) fn note(&mut self, at_s: f64, what: String) {
        self.events.push((at_s, what));
    }

    /// Takes in the last second.
    pub(super) fn take_in(&mut self, samples: &[Sample], fortunes: &[Fortune]) {
        let [.., before, now] = samples else { return };
        self.second = now.second;
        self.latency = now.lately;
        self.view = now.looks.iter().flatten().map(|status| status.view).max().unwrap_or(0);
        self.members =
            fortunes.iter().enumerate().map(|(id, f)| member(id, f, before, now)).collect();
        let running = self.members.iter().filter(|member| member.well);
        self.committed.push(running.filter_map(|member| member.rate).min().unwrap_or(0) as f64);
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
            "{:>5} s  offered {} · committed {committed}/s · p50 {} ms · p99 {} ms · view {}{}",
            self.second as i64 - self.warmup_s as i64,
            self.offered,
            milliseconds(self.latency.p50),
            milliseconds(self.latency.p99),
            thousands(self.view),
            if self.second <= self.warmup_s { " · warm-up" } else { "" },
        ))
    }

    /// The panel, for so many columns and rows.
    pub(super) fn frame(&self, width: usize, height: usize) -> Vec<String> {
        let width = width.min(WIDTH_MAX);
        if self.members.is_empty() {
            return self.stage.iter().map(|stage| format!(" {} {stage}", dim("·"))).collect();
        }
        let mut lines = vec![self.head(width), self.bar(width), String::new()];
        lines.extend(self.rates(width));
        lines.push(String::new());
        let events = self.last_events();
        let room = height.saturating_sub(lines.len() + 1 + events.len() + 2);
        lines.extend(self.rows(room));
        if !events.is_empty() {
            lines.push(String::new());
            lines.extend(events);
        }
        lines
    }

    fn head(&self, width: usize) -> String {
        let left = format!(" quorate bench · {}", self.title);
        let right = match self.second as i64 - self.warmup_s as i64 {
            ..=0 => "warm-up ".to_owned(),
            second => format!("{second} s of {} s ", self.span_s - self.warmup_s),
        };
        spread(&left, &right, width, |left| style(left).for_stderr().bold())
    }

    fn bar(&self, width: usize) -> String {
        let left_s = self.span_s.saturating_sub(self.second);
        let note = match (&self.stage, left_s) {
            (Some(stage), _) => stage.clone(),
            (None, 1..) => format!("{left_s} s left"),
            (None, 0) => String::new(),
        };
        if self.stage.is_some() {
            return format!(" {note}");
        }
        let room = width.saturating_sub(note.len() + 4);
        let share = self.second as f64 / self.span_s.max(1) as f64;
        let full = ((share * room as f64).round() as usize).min(room);
        let done = style("━".repeat(full)).for_stderr().cyan();
        format!(" {done}{}  {note}", dim(&"─".repeat(room - full)))
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
            format!(" committed {shown}  {}", style(recent(&self.committed)).for_stderr().cyan()),
            format!(
                " median    {:>9} ms    {}",
                milliseconds(latency.p50),
                style(recent(&self.medians_ms)).for_stderr().magenta()
            ),
            dim(&format!(
                " offered {} · p90 {} ms · p99 {} · max {} · view {}",
                self.offered,
                milliseconds(latency.p90),
                milliseconds(latency.p99),
                milliseconds(latency.max),
                thousands(self.view),
            ))
            .to_string(),
        ]
    }

    /// Heading and rows; where there is no room for all, those that are not well, then the slowest.
    fn rows(&self, room: usize) -> Vec<String> {
        let heading = format!(
            " {:>9}  {:<18}{:>11}{:>10}{:>9}{:>12}",
            "validator", "state", "executed/s", "height", "CPU", "memory"
        );
        let mut lines = vec![dim(&heading).to_string()];
        let mut members: Vec<&Member> = self.members.iter().collect();
        let hidden = members.len().saturating_sub(room.max(2));
        if hidden > 0 {
            members.sort_by_key(|member| (member.well, member.rate, member.id));
            members.truncate(room.max(2) - 1);
        }
        lines.extend(members.into_iter().map(Member::line));
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

impl Member {
    fn line(&self) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let state = style(format!("{:<18}", self.state)).for_stderr();
        let state = if self.well { state.green() } else { state.red() };
        format!(
            " {:>9}  {state}{:>11}{:>10}{:>9}{:>12}",
            self.id,
            or_dash(self.rate.map(thousands)),
            or_dash(self.height.map(thousands)),
            or_dash(self.cpu_cores.map(|cores| format!("{:.0} %", 100.0 * cores))),
            or_dash(self.rss_mb.map(|mb| format!("{mb:.0} MiB"))),
        )
    }
}

fn member(id: usize, fortune: &Fortune, before: &Sample, now: &Sample) -> Member {
    let (was, is) = (before.looks[id].as_ref(), now.looks[id].as_ref());
    let span_s = was.zip(is).and_then(|(was, is)| {
        let span = is.at?.saturating_duration_since(was.at?).as_secs_f64();
        (span > 0.0).then_some(span)
    });
    let grown = |value: fn(&ValidatorStatus) -> Option<f64>| {
        let grown = value(is?)? - value(was?)?;
        Some((grown / span_s?).max(0.0))
    };
    let (name, since_s) = fortune.describe();
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

/// Views given up between two looks, at the validator that saw most.
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
