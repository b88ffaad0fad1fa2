//! Turns on the execution thread: tasks in their order, and queries in the time that is theirs.
//!
//! Anybody may send queries, and one that proves two hundred keys takes as long as many
//! transactions. While a height waits, queries have an eighth of the time that tasks took; a height
//! never waits for more than the query that has begun and what is left of that eighth. While none
//! waits, they have all of it.

use quorate_types::machine::{QueryJob, Task};
use std::collections::VecDeque;
use std::time::Duration;

/// Part of the time of tasks that queries have beside them.
const QUERY_PART: i64 = 8;

/// Most time that queries save up, in nanoseconds.
const SAVED_MAX_NS: i64 = 20_000_000;

/// What waits for the thread.
#[derive(Debug, Default)]
pub(super) struct Turns {
    tasks: VecDeque<Task>,
    queries: VecDeque<QueryJob>,
    /// Time that queries have while tasks wait, in nanoseconds; below 0 what the last one took
    /// beyond it.
    saved_ns: i64,
}

impl Turns {
    /// Takes what is to be done.
    pub(super) fn put(&mut self, task: Task) {
        match task {
            Task::Query(query) => self.queries.push_back(query),
            task => self.tasks.push_back(task),
        }
    }

    /// Takes all of these.
    pub(super) fn put_all(&mut self, tasks: impl Iterator<Item = Task>) {
        tasks.for_each(|task| self.put(task));
    }

    /// The next to be done, if anything waits.
    pub(super) fn next(&mut self) -> Option<Task> {
        let query = if self.tasks.is_empty() || self.saved_ns > 0 {
            self.queries.pop_front()
        } else {
            None
        };
        query.map(Task::Query).or_else(|| self.tasks.pop_front())
    }

    /// Notes how long a task took, or a query; what came meanwhile was [put](Turns::put) before.
    pub(super) fn took(&mut self, is_query: bool, time: Duration) {
        let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        if !is_query {
            self.saved_ns = self.saved_ns.saturating_add(time / QUERY_PART).min(SAVED_MAX_NS);
        } else if !self.tasks.is_empty() {
            self.saved_ns = self.saved_ns.saturating_sub(time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quorate_types::Height;

    fn query(ticket: u64) -> Task {
        Task::Query(QueryJob { ticket, query: Bytes::new() })
    }

    /// What is done next, as text; it takes so long.
    fn step(turns: &mut Turns, time_of: impl Fn(bool) -> Duration) -> Option<String> {
        let task = turns.next()?;
        let is_query = matches!(task, Task::Query(_));
        turns.took(is_query, time_of(is_query));
        Some(match task {
            Task::Query(query) => format!("query {}", query.ticket),
            Task::Snapshot(height) => format!("task {}", height.0),
            _ => unreachable!("nothing else is put"),
        })
    }

    #[test]
    fn tasks_keep_their_order_and_go_before_queries() {
        let mut turns = Turns::default();
        (0..3).for_each(|ticket| turns.put(query(ticket)));
        (1..3).for_each(|height| turns.put(Task::Snapshot(Height(height))));
        let none = |_| Duration::ZERO;
        let order: Vec<_> = std::iter::from_fn(|| step(&mut turns, none)).collect();
        assert_eq!(order, ["task 1", "task 2", "query 0", "query 1", "query 2"]);
    }

    /// Time that tasks and queries take of a thread that is never without either.
    fn busy(task: Duration, query_time: Duration, steps: u64) -> (Duration, Duration) {
        let (mut turns, mut of_tasks, mut of_queries) =
            (Turns::default(), Duration::ZERO, Duration::ZERO);
        for number in 0..steps {
            turns.put(Task::Snapshot(Height(number)));
            turns.put(query(number));
            turns.put(query(number));
            let time = |is_query| if is_query { query_time } else { task };
            let done = step(&mut turns, time).expect("something waits");
            let of = if done.starts_with("query") { &mut of_queries } else { &mut of_tasks };
            *of += time(done.starts_with("query"));
        }
        (of_tasks, of_queries)
    }

    /// However long queries are, and however many: what they take beyond their part they wait for.
    #[test]
    fn queries_take_an_eighth_while_heights_wait() {
        let ms = Duration::from_millis;
        for (task, query) in
            [(ms(80), ms(20)), (ms(1), ms(40)), (ms(100), Duration::from_micros(100))]
        {
            let (of_tasks, of_queries) = busy(task, query, 20_000);
            assert!(of_queries <= of_tasks / 8 + query, "{of_queries:?} of {of_tasks:?}");
            assert!(of_queries >= of_tasks / 10, "{of_queries:?} of {of_tasks:?}: they starve");
        }
    }

    #[test]
    fn queries_have_all_the_time_that_nobody_wants() {
        let mut turns = Turns::default();
        (0..100).for_each(|ticket| turns.put(query(ticket)));
        let long = |_| Duration::from_secs(1);
        assert_eq!(std::iter::from_fn(|| step(&mut turns, long)).count(), 100);
        turns.put(query(0));
        turns.put(Task::Snapshot(Height(1)));
        assert_eq!(step(&mut turns, long).as_deref(), Some("task 1"), "nothing is saved");
    }

    /// Long tasks do not let queries save up for ever.
    #[test]
    fn what_is_saved_is_bounded() {
        let mut turns = Turns::default();
        turns.took(false, Duration::from_secs(3_600));
        (0..1_000).for_each(|ticket| turns.put(query(ticket)));
        turns.put(Task::Snapshot(Height(1)));
        let mut before = 0;
        while step(&mut turns, |_| Duration::from_millis(1)).as_deref() != Some("task 1") {
            before += 1;
        }
        assert_eq!(before, 20);
    }
}
