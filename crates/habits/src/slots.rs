//! Which commands are due on a day, since they came at about the same time of the days before, and will be missed if they
//! do not come.

use crate::calendar::{Calendar, apart};
use crate::rates::{CommandId, Occurrence, Rates};

/// How far from its usual time a command is still the one that was due, in seconds.
const TOLERANCE: f64 = 720.0;

/// A command comes again if it has come within so many days.
pub(crate) const RECENT_DAYS: i64 = 14;

/// How regular it is shows in so many days.
const REGULAR_DAYS: i64 = 56;

/// After so many misses in a row the home has given it up.
const MOST_MISSES: u32 = 3;

/// A command that had this probability may have come.
const PERHAPS: f64 = 0.1;

/// A command that came at about the same time of the days before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slot {
    /// The number of its class.
    pub(crate) command: CommandId,
    /// The second of the day at which it came last.
    pub(crate) second: f64,
    /// The days in a row that it would have been missed, today included.
    pub(crate) misses: u32,
    /// On how many of how many days it came before.
    pub(crate) hits: u32,
    pub(crate) days: u32,
    /// Whether only days of the same kind count: weekdays, or weekends.
    pub(crate) same_kind: bool,
    /// −ln P(all these misses), if the command is as regular as before.
    pub(crate) score: f64,
}

impl Slot {
    /// Whether it is missed by this second of its day, which begins at four.
    pub(crate) fn due_second(&self) -> f64 {
        self.second + TOLERANCE
    }

    /// Whether a command of a class, given with its probability, is the one that was due.
    pub(crate) fn is_met_by(&self, class: CommandId, second: f64, probability: f64) -> bool {
        class == self.command && probability >= PERHAPS && apart(second, self.second) < TOLERANCE
    }
}

/// The commands that are due on a day, by the learned days before it in ascending order.
pub(crate) fn due(rates: &Rates, learned: &[i64], day: i64) -> Vec<Slot> {
    let mut slots = Vec::new();
    // A long silence has many days of which this is all.
    if learned.last().is_none_or(|last| *last < day - RECENT_DAYS) {
        return slots;
    }
    let is_same_kind = |other: i64| Calendar::is_weekend(other) == Calendar::is_weekend(day);
    let of_kind: Vec<i64> = learned.iter().copied().filter(|learned| is_same_kind(*learned)).collect();
    for command in rates.classes_since(day - RECENT_DAYS) {
        let regular = rates.occurrences_of_class(command, day - RECENT_DAYS - REGULAR_DAYS);
        let perhaps = regular.iter().filter(|occurrence| occurrence.weight >= PERHAPS);
        let occurrences: Vec<Occurrence> = perhaps.copied().collect();
        let of_days: Vec<&[Occurrence]> = occurrences.chunk_by(|a, b| a.at.day == b.at.day).collect();
        let recent = occurrences.partition_point(|occurrence| occurrence.at.day < day - RECENT_DAYS);
        let sure = occurrences[recent..].iter().filter(|occurrence| occurrence.weight >= 0.5);
        for last in sure.clone().filter(|occurrence| is_same_kind(occurrence.at.day)) {
            slots.extend(slot(command, last, &of_days, &of_kind, true));
        }
        for last in sure {
            slots.extend(slot(command, last, &of_days, learned, false));
        }
    }
    // The most telling one of a command's slots at a time.
    slots.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut kept: Vec<Slot> = Vec::new();
    for slot in slots {
        if !kept.iter().any(|other| other.command == slot.command && apart(other.second, slot.second) < TOLERANCE) {
            kept.push(slot);
        }
    }
    kept
}

/// The slot whose last occurrence this is, of those of each day that perhaps were; `None` if it has come since, or was given
/// up.
fn slot(
    command: CommandId,
    last: &Occurrence,
    of_days: &[&[Occurrence]],
    days: &[i64],
    same_kind: bool,
) -> Option<Slot> {
    let near = |of_day: &[Occurrence], second: f64| {
        of_day.iter().find(|one| apart(one.at.second, second) < TOLERANCE).map(|one| one.at.second)
    };
    let at = days.partition_point(|day| *day < last.at.day);
    let mut later = of_days.iter().rev().take_while(|of_day| of_day[0].at.day > last.at.day);
    let after = days.get(at + 1..).unwrap_or_default();
    let misses = 1 + after.len() as u32;
    if misses > MOST_MISSES
        || later.any(|of_day| after.contains(&of_day[0].at.day) && near(of_day, last.at.second).is_some())
    {
        return None;
    }
    let (mut hits, mut second, mut all) = (1, last.at.second, 1);
    let earlier = of_days.partition_point(|of_day| of_day[0].at.day < last.at.day);
    let mut earlier = of_days[..earlier].iter().rev().peekable();
    let before = days.get(..at).unwrap_or_default().iter().rev();
    for day in before.take_while(|day| **day >= last.at.day - REGULAR_DAYS) {
        all += 1;
        while earlier.next_if(|of_day| of_day[0].at.day > *day).is_some() {}
        let of_day = earlier.next_if(|of_day| of_day[0].at.day == *day);
        if let Some(before) = of_day.and_then(|of_day| near(of_day, second)) {
            hits += 1;
            second = before;
        }
    }
    let chance = (f64::from(hits) + 0.5) / (f64::from(all) + 1.0);
    let score = -f64::from(misses) * (1.0 - chance).ln();
    Some(Slot { command, second: last.at.second, misses, hits, days: all, same_kind, score })
}
