//! Deviations from what a home usually does, in words.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::calendar::clock;
use crate::home::{Evidence, Home, Peak, WINDOWS};
use crate::rates::{LearnedCommand, Occurrence};
use crate::sighting::{Actions, CommandClass, Sighting};
use crate::slots::Slot;

const MOST_COMMANDS: usize = 64;

/// What was seen in fewer commands was seen in none: less is rounding.
const NEVER: f64 = 1e-6;

/// A slot that has come on this share of days is a routine.
const ROUTINE: f64 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// An action that is rare, or was never seen.
    Action,
    Command,
    /// Many commands within minutes.
    Burst,
    /// Many commands within hours.
    SlowBurst,
    /// What usually comes at one time came at another.
    ShiftedRoutine,
    /// A command that should have come.
    Overdue,
    /// No command where several should have come.
    Silence,
    /// Command after command that this household does not use so.
    Stranger,
}

impl fmt::Display for What {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(out)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Deviation {
    /// When it was beyond what is usual, in nanoseconds since the epoch.
    pub time_ns: i64,
    pub what: What,
    /// The share of usual days that are at least as strange; at least one in the number of days that it is compared with.
    pub p_value: f64,
    /// What would have been usual, for people.
    pub expected: String,
    /// What was seen, for people.
    pub seen: String,
    /// The commands that it is about: their flow and when they began.
    pub commands: Vec<(u64, i64)>,
}

impl Deviation {
    pub(crate) fn of(peak: &Peak, p_value: f64, home: &Home) -> Self {
        let (what, expected, seen) = match &peak.evidence {
            Evidence::Overdue(slot) => overdue(slot, home),
            Evidence::Silence { since_ns, expected } => {
                let hours = peak.time_ns.saturating_sub(*since_ns) as f64 / 3.6e12;
                (What::Silence, format!("{} commands", about(*expected)), format!("none for {hours:.1} hours"))
            }
            Evidence::Count { window, count, expected } => {
                let minutes = WINDOWS[*window] / 60_000_000_000;
                let what = if *window == 2 { What::SlowBurst } else { What::Burst };
                (
                    what,
                    format!("{} in {minutes} minutes", about(expected - 0.5)),
                    format!("{count} commands in {minutes} minutes"),
                )
            }
            Evidence::Stranger(count) => (
                What::Stranger,
                "commands of this household".into(),
                format!("{count} in a row that it hardly uses so"),
            ),
            evidence => match home.last_commands().next() {
                Some((_, Some(learned))) => unusual(evidence, learned, home),
                _ => (What::Command, "no command at this time".into(), "a command".into()),
            },
        };
        Self { time_ns: peak.time_ns, what, p_value, expected, seen, commands: commands(peak, home) }
    }
}

/// A number to a tenth, for people: what is less is not shown as 0.
fn tenths(number: f64) -> String {
    if number < 0.05 { "less than 0.1".into() } else { format!("{number:.1}") }
}

fn about(number: f64) -> String {
    let shown = tenths(number);
    if number < 0.05 { shown } else { format!("about {shown}") }
}

/// An unusual command: which kind of deviation, what is usual, and what was seen.
fn unusual(evidence: &Evidence, learned: &LearnedCommand, home: &Home) -> (What, String, String) {
    let first = home.rates.most_probable(learned).map(|(id, probability)| (id, home.rates.class(id), probability));
    let Some((id, class, probability)) = first else {
        return (What::Command, "another command".into(), "a command that nothing explains".into());
    };
    let seen = format!("{class} at {} with probability {probability:.2}", clock(learned.at.second));
    let top = learned.weights.first().and_then(|(id, _)| home.rates.actions(*id));
    if let Some(actions) = top.filter(|_| *evidence == Evidence::Action) {
        let days = home.rates.days();
        let share = |name: &Arc<str>| home.rates.rarest_action(&std::iter::once((Arc::clone(name), 1)).collect());
        let shares = actions.iter().map(|(name, _)| (name, share(name)));
        let rarest = shares.min_by(|(_, a), (_, b)| a.total_cmp(b));
        let rarest = rarest.map_or_else(String::new, |(name, share)| {
            let often = share * (home.rates.total + 1.0) - 0.5;
            let often = if often < NEVER { "none".to_owned() } else { tenths(often) };
            let name = sizeleak_text::escaped(name);
            format!("`{name}` in {often} of {:.0} commands in {days:.0} days", home.rates.total)
        });
        return (What::Action, rarest, seen);
    }
    let of_routine = |slot: &&Slot| slot.command == id && f64::from(slot.hits) >= ROUTINE * f64::from(slot.days);
    if let Some(slot) = home.not_come().find(of_routine) {
        return (What::ShiftedRoutine, usual_time(slot, &class), seen);
    }
    (What::Command, usual_hours(&class, &home.rates.occurrences_of_class(id, i64::MIN), home), seen)
}

fn overdue(slot: &Slot, home: &Home) -> (What, String, String) {
    let class = home.rates.class(slot.command);
    let came = |learned: &LearnedCommand| home.rates.most_probable(learned).is_some_and(|(own, _)| own == slot.command);
    let moved = home.last_commands().filter_map(|(_, learned)| learned).find(|learned| came(learned));
    let expected = usual_time(slot, &class);
    match moved {
        Some(learned) => (What::ShiftedRoutine, expected, format!("{class} at {}", clock(learned.at.second))),
        None if slot.misses > 1 => {
            (What::Overdue, expected, format!("missed for the {} time in a row", nth(slot.misses)))
        }
        None => (What::Overdue, expected, "it did not come".into()),
    }
}

fn nth(number: u32) -> String {
    match number {
        2 => "second".into(),
        3 => "third".into(),
        other => format!("{other}th"),
    }
}

/// `2 on at 07:12, as on 12 of 14 weekdays`.
fn usual_time(slot: &Slot, class: &CommandClass) -> String {
    let days = if slot.same_kind { "days of this kind" } else { "days" };
    format!("{class} at {}, as on {} of {} {days}", clock(slot.second), slot.hits, slot.days)
}

/// When a command usually comes, or which one usual command is most like it.
fn usual_hours(class: &CommandClass, occurrences: &[Occurrence], home: &Home) -> String {
    let all: f64 = occurrences.iter().map(|occurrence| occurrence.weight).sum();
    if all < 0.5 {
        return match class.first().and_then(|actions| nearest(actions, home)) {
            Some(near) => format!("never seen before; the most similar usual command is {near}"),
            None => "never seen before".into(),
        };
    }
    let mut hours = [0.0; 24];
    for occurrence in occurrences {
        hours[(occurrence.at.second / 3_600.0) as usize % 24] += occurrence.weight;
    }
    let mut often: Vec<usize> = (0..24).filter(|hour| hours[*hour] >= all / 5.0).collect();
    often.truncate(3);
    let often: Vec<String> = often.iter().map(|hour| format!("{hour:02}:00")).collect();
    let weekly = all / home.rates.days().max(1.0) * 7.0;
    let when = if often.is_empty() { String::new() } else { format!(", mostly from {}", often.join(", ")) };
    format!("it comes {} times a week{when}", tenths(weekly))
}

/// The usual command that differs in the fewest actions.
fn nearest(actions: &Actions, home: &Home) -> Option<Actions> {
    let count =
        |actions: &Actions, name: &str| actions.iter().find(|(own, _)| ***own == *name).map_or(0, |(_, count)| count);
    let apart = |other: &Actions| {
        let differs = |(name, own): (&Arc<str>, u32)| own.abs_diff(count(other, name));
        let absent = |(name, own): (&Arc<str>, u32)| if count(actions, name) == 0 { own } else { 0 };
        actions.iter().map(differs).sum::<u32>() + other.iter().map(absent).sum::<u32>()
    };
    let usual = home.rates.all().filter(|(_, seen)| seen.iter().map(|seen| seen.weight).sum::<f64>() >= 3.0);
    usual.map(|(other, _)| other).min_by_key(|other| apart(other)).cloned()
}

/// The commands that a peak is about, the first one first.
fn commands(peak: &Peak, home: &Home) -> Vec<(u64, i64)> {
    let recent = home.last_commands().map(|(Sighting { flow, time_ns, .. }, _)| (*flow, *time_ns));
    let mut commands: Vec<(u64, i64)> = match &peak.evidence {
        Evidence::Command | Evidence::Hour | Evidence::Action => recent.take(1).collect(),
        Evidence::Stranger(count) => recent.take((*count).min(MOST_COMMANDS)).collect(),
        Evidence::Count { window, .. } => {
            let is_within = |(_, time_ns): &(u64, i64)| peak.time_ns.saturating_sub(*time_ns) <= WINDOWS[*window];
            recent.take_while(is_within).take(MOST_COMMANDS).collect()
        }
        Evidence::Silence { .. } | Evidence::Overdue(_) => Vec::new(),
    };
    commands.reverse();
    commands
}
