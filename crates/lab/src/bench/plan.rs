//! Plan of a run: everything that is done to validators, in its order.

use super::config::BenchConfig;
use super::events::{Action, At, Cut, Event, Target};

/// Everything to be done, the latest first.
pub(super) fn plan(config: &BenchConfig) -> Vec<Event> {
    let one = |action| move |&at: &At| Event { at, action };
    let mut events: Vec<Event> = config.kills.iter().map(one(Action::Kill)).collect();
    events.extend(config.restarts.iter().map(one(Action::Restart)));
    events.extend(config.crowds.iter().map(one(Action::Crowd)));
    events.extend(config.lies.iter().map(|lie| Event { at: lie.at, action: Action::Lie }));
    for Cut { ends: (one, other), second } in config.cuts.iter().copied() {
        let at = At { who: Target::Member(one), second };
        events.push(Event { at, action: Action::CutFrom(other) });
    }
    for (index, change) in config.changes.iter().enumerate() {
        let at = At { who: Target::Committee, second: change.second };
        events.push(Event { at, action: Action::Change(index) });
    }
    for pause in &config.pauses {
        let end = At { second: pause.at.second + pause.for_s, ..pause.at };
        events.push(Event { at: pause.at, action: Action::Pause });
        events.push(Event { at: end, action: Action::Resume });
    }
    events.sort_by(|a, b| b.at.second.total_cmp(&a.at.second));
    events
}

/// Index of the next event whose time has come, so many seconds into the window. A change waits
/// while an epoch `is_beginning`, and holds up no other event.
pub(super) fn next_due(events: &[Event], second: f64, is_beginning: bool) -> Option<usize> {
    let may_happen = |event: &Event| {
        let waits = is_beginning && matches!(event.action, Action::Change(_));
        event.at.second <= second && !waits
    };
    events.iter().rposition(may_happen)
}

#[cfg(test)]
mod tests;
