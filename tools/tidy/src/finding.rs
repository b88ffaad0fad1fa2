//! What a check objects to.

/// An objection, with its place and the way out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// `file:line`, or several of them.
    pub(crate) place: String,
    pub(crate) advice: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, advice: String) -> Self {
        Self { place: format!("{path}:{line}"), advice }
    }
}
