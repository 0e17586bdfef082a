//! What is concluded from counts, delays and lengths.

use proptest::prelude::*;

use super::*;

fn stats(answers: u32, unsolicited: u32) -> ServiceLengthStats {
    let mut stats = ServiceLengthStats::default();
    (0..answers).for_each(|n| stats.add_answer(Some(Arrival { time_ns: i64::from(n), silence_ns: None })));
    (0..unsolicited).for_each(|_| stats.add_unsolicited(Arrival { time_ns: 0, silence_ns: None }));
    stats
}

fn delay_limit(delays: impl IntoIterator<Item = i64>) -> Option<i64> {
    let mut stats = ServiceLengthStats::default();
    delays.into_iter().for_each(|delay_ns| stats.add_delay(delay_ns));
    stats.usual_delay_limit()
}

#[test]
fn the_role_of_a_length_follows_the_share_of_answers() {
    assert_eq!(stats(2, 0).role(), LengthRole::Unknown);
    assert_eq!(stats(3, 0).role(), LengthRole::Answer);
    assert_eq!(stats(0, 3).role(), LengthRole::Unsolicited);
    assert_eq!(stats(2, 1).role(), LengthRole::Unknown);
    assert_eq!(stats(19, 1).role(), LengthRole::AlwaysAnswer);
    assert_eq!(stats(17, 3).role(), LengthRole::Answer);
}

#[test]
fn a_periodic_length_with_some_answers_has_no_known_role() {
    let mut stats = stats(2, 0);
    for minute in 0..8 {
        stats.add_unsolicited(Arrival { time_ns: minute * 60_000_000_000, silence_ns: None });
    }
    assert_eq!(stats.role(), LengthRole::Unknown);
}

#[test]
fn a_request_is_answered_by_the_length_that_most_of_its_answers_have() {
    let mut stats = GatewayLengthStats::default();
    (0..4).for_each(|_| stats.add(false));
    assert!(!stats.is_answered());
    for length in [64, 64, 80, 64] {
        stats.add_answer(length);
    }
    assert!(stats.is_answered() && stats.can_be_answered_by(80), "one in four has another length");
    (0..6).for_each(|_| stats.add_answer(64));
    assert!(stats.can_be_answered_by(64) && !stats.can_be_answered_by(80));
}

#[test]
fn records_that_mostly_follow_no_command_are_telemetry() {
    let mut stats = GatewayLengthStats::default();
    (0..10).for_each(|n| stats.add(n < 4));
    assert!(stats.is_telemetry());
    (0..2).for_each(|_| stats.add(true));
    assert!(!stats.is_telemetry());
}

#[test]
fn only_the_greatest_length_that_is_followed_is_full() {
    let mut profile = TrafficProfile::default();
    for length in [90, 124, 100, 124, 124] {
        profile.full.to_gateway.add(length);
    }
    assert!(profile.is_full(Direction::ToGateway, 124));
    assert!(!profile.is_full(Direction::ToGateway, 90) && !profile.is_full(Direction::FromGateway, 124));
}

#[test]
fn only_delays_that_are_mostly_alike_have_a_limit() {
    assert_eq!(delay_limit([200, 204, 207, 201, 900, 203, 205, 202, 206]), Some(306));
    assert_eq!(delay_limit([200; 7]), None, "too few");
    assert_eq!(delay_limit((0..16).map(|n| n * 190)), None, "commands come at any time");
}

proptest! {
    #[test]
    fn a_limit_is_never_below_the_shortest_delay(delays in prop::collection::vec(any::<i64>(), 0..40)) {
        let shortest_ns = delays.iter().map(|delay_ns| (*delay_ns).max(0)).min().unwrap_or_default();
        prop_assert!(delay_limit(delays).is_none_or(|limit_ns| limit_ns >= shortest_ns));
    }
}
