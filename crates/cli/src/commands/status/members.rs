//! The members as the validators that answer see them: who votes, who leads in vain, who is silent.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use quorate_lab::status::{MemberLook, ValidatorStatus};

/// One line of the table: a member in the eyes of all others.
#[derive(Debug, PartialEq)]
struct Row {
    member: u16,
    /// Part of the last certificates that carries its vote, where most do.
    votes: Option<f64>,
    turns: u64,
    failed: u64,
    /// Seconds since somebody heard it.
    heard_s: Option<f64>,
    /// Longest round trip from anybody to it.
    round_trip_ms: Option<f64>,
    /// Validators that have not heard it for some seconds.
    silent_at: Vec<u16>,
}

/// The table, or nothing where no validator says anything of members.
pub(super) fn table(looks: &[&ValidatorStatus]) -> Option<String> {
    let rows = rows(looks);
    if rows.is_empty() {
        return None;
    }
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(["member", "votes", "led", "failed", "heard", "round trip", "silent at"]);
    for row in &rows {
        table.add_row(row.cells());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for column in table.column_iter_mut().skip(1).take(5) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn rows(looks: &[&ValidatorStatus]) -> Vec<Row> {
    let members = looks.iter().map(|look| look.members.len()).max().unwrap_or(0);
    (0..members).map(|index| Row::of(index, looks)).collect()
}

impl Row {
    fn of(index: usize, looks: &[&ValidatorStatus]) -> Self {
        let member = u16::try_from(index).unwrap_or(u16::MAX);
        let seen: Vec<(u16, &MemberLook)> =
            looks.iter().filter_map(|look| Some((look.id, look.members.get(index)?))).collect();
        let figures = |figure: fn(&MemberLook) -> Option<f64>| {
            seen.iter().filter_map(move |(_, look)| figure(look))
        };
        let silent = seen.iter().filter(|(_, look)| look.silent == Some(true));
        Self {
            member,
            votes: figures(MemberLook::votes_ratio).reduce(f64::max),
            turns: seen.iter().map(|(_, look)| look.turns).max().unwrap_or(0),
            failed: seen.iter().map(|(_, look)| look.turns_failed).max().unwrap_or(0),
            heard_s: figures(|look| look.silence_s).reduce(f64::min),
            round_trip_ms: figures(|look| look.round_trip_ms).reduce(f64::max),
            silent_at: silent.map(|(id, _)| *id).collect(),
        }
    }

    fn cells(&self) -> [String; 7] {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let silent: Vec<String> = self.silent_at.iter().map(ToString::to_string).collect();
        [
            self.member.to_string(),
            or_dash(self.votes.map(|ratio| format!("{:.0} %", ratio * 100.0))),
            self.turns.to_string(),
            self.failed.to_string(),
            or_dash(self.heard_s.map(|seconds| format!("{seconds:.0} s ago"))),
            or_dash(self.round_trip_ms.map(|ms| format!("{ms:.1} ms"))),
            if silent.is_empty() { "-".to_owned() } else { silent.join(", ") },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(silent: bool, silence_s: f64, votes: u32) -> MemberLook {
        MemberLook {
            votes,
            certificates: 50,
            turns: 9,
            turns_failed: 2,
            silent: Some(silent),
            silence_s: Some(silence_s),
            round_trip_ms: Some(silence_s + 1.0),
            ..MemberLook::default()
        }
    }

    #[test]
    fn a_member_is_shown_as_all_others_see_it() {
        let itself = MemberLook { votes: 0, certificates: 0, ..MemberLook::default() };
        let at = |id, members: Vec<MemberLook>| ValidatorStatus {
            id,
            members,
            ..ValidatorStatus::default()
        };
        let first = at(0, vec![itself.clone(), look(true, 30.0, 10)]);
        let third = at(2, vec![look(false, 0.0, 50), look(true, 20.0, 5)]);
        let text = table(&[&first, &third]).expect("members");
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["0", "100", "%", "9", "2", "0", "s", "ago", "1.0", "ms", "-"]);
        let second = ["1", "20", "%", "9", "2", "20", "s", "ago", "31.0", "ms", "0,", "2"];
        assert_eq!(lines[2], second);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn validators_that_say_nothing_of_members_have_no_table() {
        assert_eq!(table(&[&ValidatorStatus::default()]), None);
        assert_eq!(table(&[]), None);
    }
}
