use super::*;

const WAITING: [Lane; 3] = [Lane::Votes, Lane::Consensus, Lane::Client];

#[test]
fn without_records_under_way_everything_leaves_at_once() {
    let (mut barrier, _released) = barrier();
    for lane in WAITING {
        assert_eq!(barrier.way(lane), Way::AtOnce);
    }
}

#[test]
fn a_record_holds_back_every_lane_but_bulk() {
    let (mut barrier, released) = barrier();
    barrier.persist();
    for lane in WAITING {
        assert_eq!(barrier.way(lane), Way::BehindTheLog);
    }
    assert_eq!(barrier.way(Lane::Bulk), Way::AtOnce);
    released.done(4);
    assert_eq!(barrier.way(Lane::Votes), Way::AtOnce);
}

#[test]
fn a_send_does_not_overtake_one_that_is_being_released() {
    let (mut barrier, released) = barrier();
    barrier.persist();
    assert_eq!(barrier.way(Lane::Votes), Way::BehindTheLog);
    released.done(1); // durable, but the send is not in its lane yet
    assert_eq!(barrier.way(Lane::Votes), Way::BehindTheLog);
    released.done(2);
    assert_eq!(barrier.way(Lane::Votes), Way::AtOnce);
}

#[cfg(feature = "mutants")]
#[test]
fn the_mutant_that_overtakes_is_noticed() {
    mutants::set(Some(Mutant::HostSendOvertakes));
    let (mut barrier, _released) = barrier();
    mutants::set(None);
    barrier.persist();
    assert_eq!(barrier.way(Lane::Votes), Way::AtOnce);
}
