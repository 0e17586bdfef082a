//! False alarms: how many a user allows, from which score on a day is one of so few, and how rare a day's scores are.
//!
//! The score of a day is compared with those of the days before. If a day is like them, the place of its score among
//! theirs is equally likely to be any, whatever the scores mean: of n + 1 days each is the k-th or better with
//! probability k / (n + 1). (Conformal prediction: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2005.)

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most days that a score is compared with, unless the budget needs more: habits of older days are other ones.
const MOST_DAYS: usize = 28;

/// How many false alarms a home may have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Budget {
    alarms: f64,
    unit: Unit,
}

/// A time by its name, with its days.
type Unit = (&'static str, f64);

const WEEK: Unit = ("week", 7.0);
const UNITS: [Unit; 4] = [("day", 1.0), WEEK, ("month", 365.25 / 12.0), ("year", 365.25)];

impl Budget {
    pub const WEEKLY: Self = Self { alarms: 1.0, unit: WEEK };

    pub fn a_day(self) -> f64 {
        self.alarms / self.unit.1
    }

    /// How many days must have a score before this budget can be kept.
    pub fn days_needed(self) -> usize {
        (1.0 / self.a_day() - 1e-9).ceil() as usize - 1
    }

    /// How many of some days a new one is compared with: a whole number may be alarms. `None` if they are too few.
    pub(crate) fn compared(self, days: usize) -> Option<usize> {
        let least = self.days_needed();
        let places = ((days.min(MOST_DAYS.max(least)) + 1) as f64 * self.a_day() + 1e-9).floor();
        (places > 0.0).then(|| ((places / self.a_day() - 1e-9).ceil() as usize - 1).min(days))
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || "write alarms in a time, such as 1/week, 1/month or 0.1/day; at most one a day".to_owned();
        let (alarms, unit) = text.split_once('/').ok_or_else(fault)?;
        let unit = UNITS.into_iter().find(|(known, _)| *known == unit.trim()).ok_or_else(fault)?;
        let alarms: f64 = alarms.trim().parse().map_err(|_| fault())?;
        let budget = Self { alarms, unit };
        // More than three years would have to be learned for less.
        let is_possible = alarms.is_finite() && budget.a_day() <= 1.0 && budget.a_day() >= 1.0 / 1_100.0;
        if is_possible { Ok(budget) } else { Err(fault()) }
    }
}

impl TryFrom<String> for Budget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Budget> for String {
    fn from(budget: Budget) -> Self {
        budget.to_string()
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.alarms, self.unit.0)
    }
}

/// The fewest days beside the one that is looked at.
pub(crate) const LEAST_DAYS: usize = 4;

/// Scores are sums of logarithms of estimated rates; a smaller difference is one of the estimates. Without it, a score that
/// is nearly the same every day and creeps upwards would be a record every day.
const RESOLUTION: f64 = 0.25;

/// How rare the greatest scores of days are among each other: by their ranks, and beyond the upper quarter by a Pareto
/// distribution whose shape and scale share one estimate (Lomax), so that even greater values are told apart.
///
/// −ln P(another day has at least this score), of each day among the others; at least [`LEAST_DAYS`] and one.
pub(crate) fn rareness_of_scores(scores: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let sorted: Vec<f64> = order.iter().map(|day| scores[*day]).collect();
    let mut rareness = vec![0.0; scores.len()];
    for (place, day) in order.into_iter().enumerate() {
        rareness[day] = among_others(&sorted, place);
    }
    rareness
}

/// The rareness of one of some scores, which are in descending order.
fn among_others(sorted: &[f64], place: usize) -> f64 {
    let (score, others) = (sorted[place], sorted.len() - 1);
    let other = |rank: usize| sorted[rank + usize::from(rank >= place)];
    let days = (others + 1) as f64;
    let upper = (others / 4).max(3).min(others - 1);
    let threshold = other(upper);
    let score = score - RESOLUTION;
    if score > threshold {
        let excess = (0..upper).map(|rank| other(rank) - threshold).sum::<f64>().max(upper as f64 * RESOLUTION);
        let upper = upper as f64;
        return -((upper + 0.5) / days).ln() + upper * ((score - threshold) / excess).ln_1p();
    }
    let above = (0..others).take_while(|rank| other(*rank) >= score).count();
    -((above + 1) as f64 / days).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_say_what_they_allow() {
        let days = |text: &str| text.parse::<Budget>().unwrap().days_needed();
        assert_eq!((days("1/week"), days("1/month"), days("0.1/day"), days("1/day")), (6, 30, 9, 0));
        assert_eq!("2/month".parse::<Budget>().unwrap().to_string(), "2/month");
        for wrong in ["1", "1/hour", "x/week", "2/day", "0/week", "nan/day", "1/"] {
            assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_whole_number_of_the_days_compared_may_be_alarms() {
        for budget in ["1/week", "1/month", "0.1/day", "3/month", "1/year", "1/day"] {
            let budget: Budget = budget.parse().unwrap();
            for days in 0..500 {
                let Some(compared) = budget.compared(days) else {
                    assert!(days < budget.days_needed(), "{budget} after {days}");
                    continue;
                };
                assert!(compared <= days && days >= budget.days_needed(), "{budget} after {days}");
                let alarms = (compared + 1) as f64 * budget.a_day();
                assert!(
                    alarms >= 1.0 - 1e-9 && alarms - (alarms + 1e-9).floor() < budget.a_day(),
                    "{budget} after {days}"
                );
            }
        }
        let weekly = [6, 12, 27, 90].map(|days| Budget::WEEKLY.compared(days));
        assert_eq!(weekly, [Some(6), Some(6), Some(27), Some(27)]);
    }

    #[test]
    fn greater_scores_are_rarer_and_great_ones_are_told_apart() {
        let of_new =
            |score: f64| rareness_of_scores(&[&[score], &(0..28).map(f64::from).collect::<Vec<_>>()[..]].concat())[0];
        let found: Vec<f64> = (-5..60).map(|score| of_new(f64::from(score))).collect();
        assert!(found.is_sorted_by(|one, next| one <= next), "{found:?}");
        assert!((of_new(13.5) - (29.0_f64 / 15.0).ln()).abs() < 1e-12);
        assert!(found[64] > found[44] + 1.0);
        assert!(rareness_of_scores(&[2.0; 9]).iter().all(|rareness| rareness.abs() < 1e-9), "equal days are not rare");
    }

    #[test]
    fn each_day_is_compared_with_the_others_alone() {
        let days = [3.0, 9.0, 1.0, 4.0, 2.0, 6.0, 5.0];
        let turned: Vec<f64> = days.iter().rev().copied().collect();
        let (mut found, again) = (rareness_of_scores(&days), rareness_of_scores(&turned));
        found.reverse();
        assert_eq!(found, again);
    }
}
