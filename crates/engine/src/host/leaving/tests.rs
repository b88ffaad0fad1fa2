use super::{AtTheEnd, Stay};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_millis(100);

#[test]
fn who_has_handed_over_and_stays_a_member_goes_on() {
    let own = AtTheEnd { is_own: true, has_state: true, ..AtTheEnd::default() };
    assert_eq!(own.stay(TIMEOUT), Stay::Over);
    assert_eq!(AtTheEnd { is_served: true, ..own }.stay(TIMEOUT), Stay::Over);
}

/// It may have started again, and hear of the end from others before its own replica says so.
#[test]
fn who_leaves_with_the_state_serves_it_whoever_told_of_the_end() {
    for is_own in [false, true] {
        let leaver = AtTheEnd { is_own, has_state: true, leaves: true, is_served: false };
        assert_eq!(leaver.stay(TIMEOUT), Stay::UntilOthersBegan);
        assert_eq!(AtTheEnd { is_served: true, ..leaver }.stay(TIMEOUT), Stay::UntilOthersBegan);
    }
}

#[test]
fn who_lacks_the_state_stays_longer_while_it_is_served() {
    for leaves in [false, true] {
        let behind = AtTheEnd { leaves, ..AtTheEnd::default() };
        assert_eq!(behind.stay(TIMEOUT), Stay::For(TIMEOUT));
        let served = AtTheEnd { is_served: true, ..behind };
        assert_eq!(served.stay(TIMEOUT), Stay::For(60 * TIMEOUT));
    }
}
