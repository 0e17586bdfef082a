//! False alarms: how many a user allows, and from which score on a day is one of so few.
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
}
