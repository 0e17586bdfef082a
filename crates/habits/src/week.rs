//! The week of a home for people: how often it uses each action at which hour.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::calendar::{Calendar, LocalTime};
use crate::home::Home;

/// How often a home uses an action.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionWeek {
    pub action: Arc<str>,
    /// The expected commands with it in each hour of the clock, of each weekday from Monday on: the mean of the days that
    /// were learned, or `None` where none was.
    pub hours: [[Option<f64>; 24]; 7],
    /// The expected commands with it in a week, by the mean of all days.
    pub weekly: f64,
}

impl Home {
    /// When the home uses each action, the most used first. A command counts by the probability that it had the action.
    pub fn week(&self) -> Vec<ActionWeek> {
        let mut learned = [[0.0; 24]; 7];
        for day in self.whole_days() {
            for hour in 0..24_u32 {
                let (weekday, hour) = Calendar::hour_of_week(LocalTime { day, second: f64::from(hour) * 3_600.0 });
                learned[weekday][hour] += 1.0;
            }
        }
        let mut sums: BTreeMap<&Arc<str>, [[f64; 24]; 7]> = BTreeMap::new();
        for (_, actions, occurrences) in self.rates.all() {
            for (action, _) in actions.iter() {
                let hours = sums.entry(action).or_default();
                for occurrence in occurrences {
                    let (weekday, hour) = Calendar::hour_of_week(occurrence.at);
                    hours[weekday][hour] += occurrence.weight;
                }
            }
        }
        let mean = |sum: f64, days: f64| (days > 0.0).then(|| sum / days);
        let week = |(action, sums): (&Arc<str>, [[f64; 24]; 7])| {
            let day = |day: usize| std::array::from_fn(|hour| mean(sums[day][hour], learned[day][hour]));
            let weekly = sums.iter().flatten().sum::<f64>() / self.rates.days().max(1.0) * 7.0;
            ActionWeek { action: Arc::clone(action), hours: std::array::from_fn(day), weekly }
        };
        let mut weeks: Vec<ActionWeek> = sums.into_iter().map(week).collect();
        weeks.sort_by(|a, b| b.weekly.total_cmp(&a.weekly));
        weeks
    }
}
