//! Results of benches, and what is drawn from them.
//!
//! # Takes
//!
//! Plain serialisable values: a [`Report`] and the parts of it in [`results`], which whoever
//! measures fills in, or a [`chart::Plot`]. Nothing here measures, opens a connection or knows a
//! protocol: the crate depends on no other of this workspace, so that a stored result can be drawn
//! again without what produced it.
//!
//! # Gives
//!
//! * [`page`]: self-contained HTML pages of one run or of several compared, which hold their
//!   results and can be read again; the same comparison as text.
//! * [`chart`]: SVG, inside a page or as a file of its own.
//! * [`merge`]: one result out of several loads that ran at once.
//! * [`text`]: numbers, durations and moments as people read them.

pub mod chart;
pub mod merge;
pub mod page;
pub mod results;
pub mod text;

pub use results::Report;
