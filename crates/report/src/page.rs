//! Report pages: one run, or several compared, as a file that needs nothing but itself.
//!
//! [`html()`] writes a page and [`file::read`] gets the runs out of one again, since a page carries
//! the results that it shows. [`compare::table`] says the same in a terminal, and [`charts::of`]
//! gives the charts one by one.

pub mod charts;
pub mod compare;
mod document;
pub mod figures;
pub mod file;
mod html;
mod lines;
mod reading;
mod run;
mod settings;
pub mod tables;

pub use document::{Colours, Results, document};
pub use html::{html, title};
pub use lines::heat;
pub use run::{Run, caption, name_runs};

#[cfg(test)]
mod tests;

/// For tests of what takes a result.
#[cfg(test)]
pub(crate) use tests::report as sample_report;
