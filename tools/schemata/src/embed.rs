//! Source with mutants embedded: each is an `if` that asks the switch.
//!
//! All of it is insertion, so that mutants nest. A mutant's own text holds the original operands:
//! only one mutant is on at a time.

use std::ops::Range;

use crate::mutant::{Genre, Mutant};
use crate::syntax::{Node, Nodes};

/// A mutant in a file: what goes before and after a range of its source.
pub struct Edit {
    pub id: usize,
    range: Range<usize>,
    before: String,
    after: &'static str,
    /// Goes before all else that begins there.
    is_statement: bool,
}

impl Edit {
    /// The edit that embeds a mutant; none where it cannot be.
    pub fn of(id: usize, mutant: &Mutant, source: &str, nodes: &Nodes) -> Option<Self> {
        let start = mutant.span.start.byte(source)?;
        let with = &mutant.replacement;
        match (mutant.genre, nodes.at(mutant.genre, start)) {
            (Genre::FnValue, _) => {
                let function = mutant.function.as_ref()?;
                // The first value returned would decide the type.
                let is_known = !function.return_type.contains("impl ");
                is_known.then(|| Self::inserted(id, start, format!("return {with};")))
            }
            (_, Some(Node::Binary { whole, operator })) => {
                let left = &source[whole.start..operator.start];
                let right = &source[operator.end..whole.end];
                Some(Self::wrapped(id, whole, &format!("{left}{with}{right}")))
            }
            (_, Some(Node::Unary { whole, operand })) => {
                Some(Self::wrapped(id, whole, &source[operand.clone()]))
            }
            (_, Some(Node::Arm { guard: Some(guard), .. })) => {
                Some(Self::guarded(id, guard, false))
            }
            (_, Some(Node::Arm { pattern_end, .. })) => Some(Self {
                before: format!(" if !{} ", on(id)),
                ..Self::inserted(id, *pattern_end, String::new())
            }),
            (_, Some(Node::Guard(guard))) => Some(Self::guarded(id, guard, with == "true")),
            (_, Some(Node::Field { name, value, path, rest })) => {
                let (path, rest) = (&source[path.clone()], &source[rest.clone()]);
                let mut edit = Self::wrapped(
                    id,
                    value,
                    &if syn::parse_str::<syn::Path>(rest).is_ok() {
                        format!("{rest}.{name}")
                    } else {
                        format!("({path} {{ ..{rest} }}).{name}")
                    },
                );
                let is_shorthand = value.start == start;
                if is_shorthand {
                    edit.before.insert_str(0, &format!("{name}: "));
                }
                Some(edit)
            }
            (_, Some(Node::LetChain) | None) => None,
        }
    }

    /// The edit that changes nothing, around what an arm's pattern is matched with: what the
    /// compiler finds there is the arm's doing.
    pub fn around_scrutinee(
        id: usize,
        mutant: &Mutant,
        source: &str,
        nodes: &Nodes,
    ) -> Option<Self> {
        let start = mutant.span.start.byte(source)?;
        match nodes.at(mutant.genre, start)? {
            Node::Arm { scrutinee, .. } => {
                let (before, after) = ("(".to_owned(), ")");
                Some(Self { id, range: scrutinee.clone(), before, after, is_statement: false })
            }
            _ => None,
        }
    }

    fn inserted(id: usize, at: usize, statement: String) -> Self {
        let before = format!("if {} {{ {statement} }} ", on(id));
        Self { id, range: at..at, before, after: "", is_statement: true }
    }

    fn wrapped(id: usize, range: &Range<usize>, mutated: &str) -> Self {
        let before = format!("(if {} {{ {mutated} }} else {{ ", on(id));
        Self { id, range: range.clone(), before, after: " })", is_statement: false }
    }

    fn guarded(id: usize, guard: &Range<usize>, is_true: bool) -> Self {
        let (not, operator) = if is_true { ("", "||") } else { ("!", "&&") };
        let before = format!("({not}{} {operator} (", on(id));
        Self { id, range: guard.clone(), before, after: "))", is_statement: false }
    }
}

fn on(id: usize) -> String {
    format!("crate::mutant_switch::on({id})")
}

/// Where in an embedded source a mutant is.
pub struct Region {
    pub id: usize,
    /// The mutant's own text.
    pub own: Range<usize>,
    /// That and what it was wrapped around.
    pub whole: Range<usize>,
}

/// Source with mutants in it, and where each is.
pub struct Embedded {
    pub text: String,
    pub regions: Vec<Region>,
}

enum Event<'a> {
    After(&'a Edit, usize),
    Before(&'a Edit, usize),
}

/// Inserts the edits' texts, those of outer ranges around those of inner ones.
pub fn embed(source: &str, edits: &[&Edit]) -> Embedded {
    let mut events: Vec<(usize, Event)> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        events.push((edit.range.start, Event::Before(edit, index)));
        if !edit.is_statement {
            events.push((edit.range.end, Event::After(edit, index)));
        }
    }
    // What ends here, inner first; statements; what begins here, outer first.
    let last = |length: usize| usize::MAX - length;
    events.sort_by_key(|(at, event)| match event {
        Event::After(edit, index) => (*at, 0, last(edit.range.start), last(*index)),
        Event::Before(edit, index) if edit.is_statement => (*at, 1, 0, *index),
        Event::Before(edit, index) => (*at, 2, last(edit.range.end), *index),
    });
    let mut text = String::new();
    let mut own = vec![0..0; edits.len()];
    let mut end = vec![0; edits.len()];
    let mut copied = 0;
    for (at, event) in events {
        text.push_str(&source[copied..at]);
        copied = at;
        match event {
            Event::Before(edit, index) => {
                let start = text.len();
                text.push_str(&edit.before);
                own[index] = start..text.len();
                end[index] = text.len();
            }
            Event::After(edit, index) => {
                text.push_str(edit.after);
                end[index] = text.len();
            }
        }
    }
    text.push_str(&source[copied..]);
    let regions = edits.iter().zip(own).zip(end);
    let regions = regions
        .map(|((edit, own), end)| Region { id: edit.id, whole: own.start..end, own })
        .collect();
    Embedded { text, regions }
}
