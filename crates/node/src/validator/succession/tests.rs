use super::Trust;
use arc_swap::ArcSwap;
use quorate_engine::Status;
use quorate_types::Height;
use std::sync::Arc;

/// Who executes something in this run is with the committee, and a founding file is its operator's.
#[test]
fn who_executes_something_knows_the_epoch_in_force() {
    let known_ms = |known, executed| {
        let status = Status { executed, ..Status::default() };
        Trust { known, status: Arc::new(ArcSwap::from_pointee(status)) }.known_ms(500)
    };
    assert_eq!(known_ms(None, Height(0)), None);
    assert_eq!(known_ms(Some((20, Height(7))), Height(7)), Some(20));
    assert_eq!(known_ms(Some((20, Height(7))), Height(8)), Some(500));
}
