//! Attacks on a home that its own detector finds.

use std::sync::Arc;

use jiff::tz::TimeZone;
use sizeleak_audit::guard::{Guard, GuardedHome};
use sizeleak_habits::{Budget, Components, Detector, Home, Sighting};
use sizeleak_simulator::scenario::{AttackKind, HabitSettings};
use sizeleak_simulator::{Scenario, SimulateError, SimulatedCapture, Truth};

/// A day, in nanoseconds.
const DAY: i64 = 86_400_000_000_000;

/// What a detector finds in a home of ten weeks whose commands are known, or only when they come.
fn watched(is_known: bool) -> GuardedHome {
    let habits = HabitSettings { days: 70, ..HabitSettings::default() };
    let scenario = Scenario { habits, ..Scenario::default() };
    let names: Vec<Arc<str>> = scenario.action_names().into_iter().map(Arc::from).collect();
    let see = |test: &SimulatedCapture| -> Result<Vec<Sighting>, SimulateError> {
        let sighting = |truth: &Truth| {
            let actions = names.iter().cloned().zip(truth.counts.iter().copied()).collect();
            let candidates = if is_known { vec![(actions, 1.0)] } else { Vec::new() };
            Sighting { time_ns: truth.time_ns, flow: 1, candidates }
        };
        Ok(test.truths.iter().map(sighting).collect())
    };
    let attacks = [AttackKind::Burst, AttackKind::NewAction];
    let detector = Detector::new(Home::new(TimeZone::UTC, Components::ALL), Budget::WEEKLY);
    Guard { scenario: &scenario, days: 42, attacks: &attacks }.watch(3, detector, see).unwrap()
}

#[test]
fn a_burst_is_found_by_its_times_alone_and_a_new_action_only_where_it_is_known() {
    let found = |home: &GuardedHome| -> Vec<(AttackKind, bool)> {
        home.attacks.iter().map(|attack| (attack.kind, attack.alarm.is_some())).collect()
    };
    let (known, hidden) = (watched(true), watched(false));
    assert!(found(&known).contains(&(AttackKind::Burst, true)) && found(&hidden).contains(&(AttackKind::Burst, true)));
    assert!(found(&known).contains(&(AttackKind::NewAction, true)), "{:?}", found(&known));
    assert!(found(&hidden).contains(&(AttackKind::NewAction, false)), "{:?}", found(&hidden));
    for attack in known.attacks {
        let alarm = attack.alarm.unwrap();
        assert!((attack.start_ns..attack.start_ns + DAY).contains(&alarm.time_ns));
    }
    assert!(known.from_ns < known.until_ns && known.false_alarms.len() < 10);
}
