//! A suite: rows of measured runs beside their goals, one after the other in one sitting on one
//! machine.
//!
//! * [`Suite`]: one TOML file. What a row runs is described as a point of an experiment is
//!   ([`Setup`]), and the same runners measure it; a row has a key, a title and goals, where an
//!   experiment has a matrix, repeats and figures.
//! * [`sit()`]: measures the rows in random order, each beside a look at how quiet the machine was
//!   ([`crate::quiet`]).
//! * [`SuiteResult`]: all of it as one JSON document, which may stand beside an earlier one of the
//!   same machine.
//! * [`render`] and [`markdown`]: a result for a terminal, and as a page of documentation.
//!
//! [`Setup`]: crate::experiment::Setup

mod compare;
mod error;
mod figures;
mod file;
mod goal;
mod page;
mod result;
mod sit;
mod table;

pub use error::SuiteError;
pub use file::{Row, Suite};
pub use goal::{Goal, Judged, Limit};
pub use page::{check_binary, markdown, write_page};
pub use result::{Compared, Earlier, FORMAT, RowResult, SuiteResult};
pub use sit::{Event, Sitting, estimate_s, sit};
pub use table::{line, render};

#[cfg(test)]
mod tests;
