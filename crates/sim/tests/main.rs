//! Whole committees in virtual time: what must hold, and mutants that must not.
//!
//! One program for all, so that its tests share the processors to the end.

mod behaviours;
mod changes;
mod crash_points;
mod cut_links;
mod lanes;
mod mutants;
mod payments_interleavings;
mod regressions;
mod stand_ins;
