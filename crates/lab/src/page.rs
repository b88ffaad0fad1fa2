//! Report pages: one run, or several compared, as a file that needs nothing but itself.
//!
//! [`html()`] writes a page and [`file::read`] gets the runs out of one again, since a page carries the
//! results that it shows. [`compare::table`] says the same in a terminal, and [`charts::of`] gives the
//! charts one by one.

pub mod charts;
pub mod compare;
pub mod figures;
pub mod file;
mod html;
mod lines;
mod run;
mod settings;
pub(crate) mod tables;

pub(crate) use html::{LIGHT_PAGE_STYLE, READOUT};
pub use html::{html, title};
pub(crate) use lines::heat;
pub use run::{Run, caption, name_runs};

#[cfg(test)]
pub(crate) mod tests;
