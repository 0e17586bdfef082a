//! Tests of habits as a prior: two commands of one size, told apart by the time of day.

use std::sync::Arc;

use sizeleak_frame::{Candidate, Command};

use super::*;
use crate::sighting::Sighting;

const HOUR: i64 = 3_600_000_000_000;
/// Monday, the fifth of January 2026.
const MONDAY: i64 = 1_767_571_200_000_000_000;

/// `open` at 7 and `close` at 22 every day, known for certain.
fn profile(days: i64) -> Profile {
    let sighting = |day: i64, hour: i64, name: &str| {
        let actions = std::iter::once((Arc::from(name), 1)).collect();
        let minutes = (day * 5).rem_euclid(17) * 60_000_000_000;
        Sighting { time_ns: MONDAY + (24 * day + hour) * HOUR + minutes, flow: 0, candidates: vec![(actions, 1.0)] }
    };
    let mut profile = Profile::new("UTC").unwrap();
    profile.add("", (0..days).flat_map(|day| [sighting(day, 7, "open"), sighting(day, 22, "close")]).collect());
    profile
}

/// A command that may be either, by a model that takes `open` for three times as frequent.
fn either(time_ns: i64, likelihoods: [Option<f64>; 2]) -> Identification {
    let command = Command { time_ns, ..Command::default() };
    let candidate = |name: &str, probability, likelihood| Candidate {
        actions: std::iter::once((Arc::from(name), 1)).collect(),
        epsilon: 0,
        probability,
        likelihood,
    };
    let [open, close] = likelihoods;
    let candidates = [candidate("open", 0.6, open), candidate("close", 0.2, close)];
    Identification { candidates: candidates.into_iter().collect(), ..Identification::unanswered(command) }
}

fn probabilities(prior: &mut HabitPrior, day: i64, hour: i64) -> Vec<f64> {
    let answer = either(MONDAY + (24 * day + hour) * HOUR, [Some(1.0), Some(1.0)]);
    prior.probabilities(&answer).unwrap()
}

#[test]
fn the_time_of_day_tells_commands_of_one_size_apart() {
    let mut prior = HabitPrior::new(profile(30));
    let [morning, evening] = [7, 22].map(|hour| probabilities(&mut prior, 31, hour));
    // The sum stays: what is not listed is not what habits speak of.
    assert!((morning.iter().sum::<f64>() - 0.8).abs() < 1e-12, "{morning:?}");
    assert!(morning[0] > 0.6 && evening[1] > 0.2 && evening[1] > 0.4, "{morning:?} {evening:?}");
    // By habits alone it would be certain; the model has half the weight, and sizes say nothing that would change it.
    let expected = 0.8 * f64::midpoint(0.25, 1.0);
    assert!((evening[1] - expected).abs() < 0.02, "{evening:?}");
}

#[test]
fn commands_that_the_profile_has_and_unknown_likelihoods_stay_as_they_are() {
    let mut prior = HabitPrior::new(profile(30));
    assert_eq!(prior.probabilities(&either(MONDAY + 7 * HOUR, [Some(1.0); 2])), None);
    assert_eq!(prior.probabilities(&either(MONDAY + 31 * 24 * HOUR, [Some(1.0), None])), None);
}

/// What was seen is at most 2 √(T + 1) times less probable than by the model alone, even if habits are always wrong.
#[test]
fn wrong_habits_cost_little() {
    let mut prior = HabitPrior::new(profile(30));
    let mut cost = 0.0;
    let commands = 60;
    for day in 0..commands {
        // Sizes are clear, and say the opposite of what habits do.
        let answer = either(MONDAY + (24 * (31 + day) + 22) * HOUR, [Some(1.0), Some(0.01)]);
        let found = prior.probabilities(&answer).unwrap();
        // The model's own belief in what it is: `open`.
        cost += (0.6 / found[0]).ln();
    }
    let bound = (2.0 * ((commands + 1) as f64).sqrt()).ln();
    assert!(cost <= bound, "{cost} nats, of {bound}");
}

/// A clock that was set back says when no later answer was, whatever connection it is of; up to an hour is disorder of
/// commands that overlap. Other gateways have clocks of their own.
#[test]
fn answers_that_go_back_in_time_are_passed_over_and_counted() {
    let mut homes: Homes<()> = Homes::new(Profile::new("UTC").unwrap());
    homes.flows.name_gateway(3, "other");
    let mut see = |flow, hour: i64| {
        let mut answer = either(MONDAY + hour * HOUR, [Some(1.0); 2]);
        answer.command.flow = flow;
        homes.see(&answer, |_, _| ((), None)).is_some()
    };
    let found = [(1, 100), (2, 99), (2, 98), (3, 5), (1, 97), (2, 101), (3, 4)].map(|(flow, hour)| see(flow, hour));
    assert_eq!(found, [true, true, false, true, false, true, true]);
    let disorder = Disorder { answers: 2, first_ns: MONDAY + 98 * HOUR, before_ns: MONDAY + 100 * HOUR };
    assert_eq!(homes.disorders().collect::<Vec<_>>(), [("", disorder)]);
    assert_eq!(homes.passed_over(), (0, 0));
}
