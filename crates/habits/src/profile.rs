//! Profiles: what homes usually do, as a file that people read and that detection goes on from.
//!
//! A profile is a diary. For each home it holds the commands of the last months with what each may have been, and says
//! above them what is learned from them. Whoever reads it, reads that; the program learns from the diary again, so a day
//! that was not usual can be deleted from it by hand.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use sizeleak_text::read_text;
use thiserror::Error;
use toml::Value;

use crate::budget::Budget;
use crate::calendar::{Calendar, LocalTime, clock};
use crate::detector::Detector;
use crate::home::{Home, forgotten};
use crate::rates::{CommandId, Components};
use crate::sighting::{Actions, CommandClass, Sighting};
use crate::slots::{Slot, due};

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 32 << 20;

const SCHEMA: u32 = 1;

const MICROSECOND: i64 = 1_000;

/// The most commands and routines that are listed for people.
const MOST_LISTED: usize = 40;

/// A routine has come on at least this share of days, and this many.
const ROUTINE: (f64, u32) = (0.6, 5);

#[derive(Debug, Error)]
#[error("{0}")]
pub struct ProfileError(String);

fn in_one_line(error: &toml::de::Error) -> String {
    let shown = error.to_string();
    let place = shown.lines().next().filter(|_| error.span().is_some());
    place.map_or_else(String::new, |place| format!("{place}: ")) + error.message()
}

#[derive(Debug, Clone)]
pub struct Profile {
    zone: String,
    homes: BTreeMap<String, Diary>,
}

#[derive(Debug, Clone)]
struct Diary {
    components: Components,
    sightings: Vec<Sighting>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ProfileFile {
    schema: u32,
    time_zone: String,
    #[serde(default)]
    home: Vec<HomeFile>,
}

#[derive(Deserialize)]
struct HomeFile {
    gateway: String,
    uses: Vec<String>,
    diary: Vec<DiaryRow>,
}

/// When a command came, and its candidates, each with its likelihood.
type DiaryRow = (String, Vec<(f64, BTreeMap<String, u32>)>);

impl Profile {
    /// A profile of no home, by the clock of a time zone: a name of the IANA database, or `UTC`.
    pub fn new(zone: &str) -> Result<Self, ProfileError> {
        time_zone(zone)?;
        Ok(Self { zone: zone.to_owned(), homes: BTreeMap::new() })
    }

    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let fault = |reason: String| ProfileError(format!("{}: {reason}", path.display()));
        let text = read_text(path, MAX_FILE_BYTES).map_err(|error| fault(error.to_string()))?;
        Self::from_toml(&text).map_err(|error| fault(error.to_string()))
    }

    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let fault = |error| ProfileError(format!("it is no profile: {}", in_one_line(&error)));
        let ProfileFile { schema, time_zone, home } = toml::from_str(text).map_err(fault)?;
        if schema != SCHEMA {
            return Err(ProfileError(format!(
                "it is of schema {schema}, and this version reads {SCHEMA}: use the version that wrote it"
            )));
        }
        let mut profile = Self::new(&time_zone)?;
        for HomeFile { gateway, uses, diary } in home {
            let has = |name: &str| uses.iter().any(|used| used == name);
            let components = Components { time: has("time"), order: has("order") };
            let sighting = |(time, candidates): DiaryRow| {
                let parsed = time.parse::<Timestamp>().ok();
                let time_ns = parsed.and_then(|parsed| i64::try_from(parsed.as_nanosecond()).ok());
                let time_ns = time_ns.ok_or_else(|| ProfileError(format!("`{time}` is no time")))?;
                let candidate = |(likelihood, actions): (f64, BTreeMap<String, u32>)| {
                    (actions.into_iter().map(|(name, count)| (Arc::from(name), count)).collect(), likelihood)
                };
                let candidates = candidates.into_iter().map(candidate).filter(|(_, likelihood)| likelihood.is_finite());
                Ok(Sighting { time_ns, flow: 0, candidates: candidates.collect() }.reduced())
            };
            let mut sightings = diary.into_iter().map(sighting).collect::<Result<Vec<_>, ProfileError>>()?;
            sightings.sort_by_key(|sighting| sighting.time_ns);
            profile.homes.insert(gateway, Diary { components, sightings });
        }
        Ok(profile)
    }

    pub fn gateways(&self) -> impl Iterator<Item = &str> {
        self.homes.keys().map(String::as_str)
    }

    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Adds what a gateway was seen to do; commands at a time that it has already are taken to be the same ones. What the
    /// model of the home uses is chosen anew, by what it remembers then: time of day and order each stay out unless they
    /// forecast commands better, by what was known before the day of each.
    pub fn add(&mut self, gateway: &str, sightings: Vec<Sighting>) {
        let empty = Diary { components: Components::ALL, sightings: Vec::new() };
        let diary = self.homes.entry(gateway.to_owned()).or_insert(empty);
        // Times are written to the microsecond.
        diary.sightings.extend(sightings.into_iter().map(|sighting| {
            // The first microsecond cannot be read again.
            let time_ns = sighting.time_ns.max(i64::MIN + MICROSECOND);
            let time_ns = time_ns - time_ns.rem_euclid(MICROSECOND);
            Sighting { time_ns, ..sighting }
        }));
        diary.sightings.sort_by_key(|sighting| sighting.time_ns);
        diary.sightings.dedup_by_key(|sighting| sighting.time_ns);
        let Ok(zone) = time_zone(&self.zone) else { return };
        // What is older is forgotten, so it says nothing of what the model uses, whether it is added before or with the rest.
        diary.sightings.drain(..forgotten(&Calendar::new(zone.clone()), &diary.sightings));
        let forms = [(true, true), (true, false), (false, true), (false, false)];
        let forms = forms.map(|(time, order)| Components { time, order });
        let sightings = &diary.sightings[..];
        let mut homes = std::thread::scope(|scope| {
            let threads = forms.map(|components| {
                let home = Home::new(zone.clone(), components);
                scope.spawn(move || replayed(home, sightings))
            });
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        // The first of equal ones.
        homes.sort_by(|a, b| a.log_loss().unwrap_or(0.0).total_cmp(&b.log_loss().unwrap_or(0.0)));
        let [best, ..] = homes;
        diary.components = best.components();
    }

    pub(crate) fn forget(&mut self, gateway: &str) {
        self.homes.remove(gateway);
    }

    /// The home behind a gateway; one of which nothing is known where the profile does not hold it.
    pub fn home(&self, gateway: &str) -> Home {
        let (home, sightings) = self.begun(gateway);
        replayed(home, sightings)
    }

    /// The same home, learned without regard to what it did before ([`Home::neutral`]).
    pub(crate) fn neutral_home(&self, gateway: &str) -> Home {
        let (home, sightings) = self.begun(gateway);
        replayed(home.neutral(), sightings)
    }

    /// A detector that knows the home behind a gateway; one that knows nothing where the profile does not hold it.
    pub fn detector(&self, gateway: &str, budget: Budget) -> Detector {
        let (home, sightings) = self.begun(gateway);
        let mut detector = Detector::new(home, budget);
        for sighting in sightings {
            detector.observe(sighting.clone());
        }
        detector
    }

    /// A home that has seen nothing yet, and what it is to see.
    fn begun(&self, gateway: &str) -> (Home, &[Sighting]) {
        let zone = time_zone(&self.zone).unwrap_or(TimeZone::UTC);
        let known = self.homes.get(gateway);
        let components = known.map_or(Components::ALL, |diary| diary.components);
        (Home::new(zone, components), known.map_or(&[], |diary| &diary.sightings))
    }

    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "# What homes usually do, written by `sizeleak profile`. The program learns from the diary; the rest is for\n\
             # people, and written anew. A day that was not usual can be deleted from the diary.\n\
             schema = {SCHEMA}\nversion = {}\ntime-zone = {}\n",
            quoted(env!("CARGO_PKG_VERSION")),
            quoted(&self.zone)
        );
        for (gateway, diary) in &self.homes {
            write_home(&mut text, gateway, diary, &self.home(gateway));
        }
        text
    }
}

fn replayed(mut home: Home, sightings: &[Sighting]) -> Home {
    for sighting in sightings {
        home.observe(sighting.clone());
    }
    home
}

fn time_zone(name: &str) -> Result<TimeZone, ProfileError> {
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    let unknown = |_| format!("the time zone `{name}` is not known: write one like Europe/Berlin, or UTC");
    TimeZone::get(name).map_err(unknown).map_err(ProfileError)
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn write_home(text: &mut String, gateway: &str, diary: &Diary, home: &Home) {
    let Components { time, order } = diary.components;
    let uses = [("time", time), ("order", order)].into_iter().filter(|(_, used)| *used);
    let uses: Vec<String> = uses.map(|(name, _)| quoted(name)).collect();
    let (days, commands) = (home.learned_days(), diary.sightings.len());
    let _ = write!(
        text,
        "\n[[home]]\ngateway = {}\nlearned = {{ days = {days}, commands = {commands} }}\nuses = [{}]\n",
        quoted(gateway),
        uses.join(", ")
    );
    text.push_str(
        "\n# The most frequent commands: times a week, and from which hours on weekdays and on weekends.\nusual = [\n",
    );
    for (actions, weekly, hours) in usual(home) {
        let hours = hours.map(|hours| hours.iter().map(u32::to_string).collect::<Vec<_>>().join(", "));
        let actions = quoted(&actions.to_string());
        let [weekdays, weekends] = hours;
        // One that came is not shown as none.
        let digits = if weekly < 0.05 { 2 } else { 1 };
        let _ = writeln!(
            text,
            "  {{ command = {actions}, a-week = {weekly:.digits$}, weekdays = [{weekdays}], weekends = [{weekends}] }},"
        );
    }
    text.push_str("]\n\n# Commands that come at about the same time, with on how many days they came.\nroutines = [\n");
    for Routine { command, at, came, of, days } in home.routines().into_iter().take(MOST_LISTED) {
        let (command, at) = (quoted(&command.to_string()), quoted(&at));
        let _ = writeln!(text, "  {{ command = {command}, at = {at}, came = {came}, of = {of}, days = \"{days}\" }},");
    }
    text.push_str(
        "]\n\n# Each command with what it may have been, and how well that explains what was seen.\ndiary = [\n",
    );
    for sighting in &diary.sightings {
        let time = sizeleak_text::utc(sighting.time_ns);
        let candidate = |(actions, likelihood): &(Actions, f64)| {
            let counts: Vec<String> =
                actions.iter().map(|(name, count)| format!("{} = {count}", quoted(name))).collect();
            format!("[{likelihood:?}, {{ {} }}]", counts.join(", "))
        };
        let candidates: Vec<String> = sighting.candidates.iter().map(candidate).collect();
        let _ = writeln!(text, "  [{}, [{}]],", quoted(&time), candidates.join(", "));
    }
    text.push_str("]\n");
}

/// The most frequent commands: how often a week, and the hours of weekdays and weekends that have a tenth of them or more.
fn usual(home: &Home) -> Vec<(CommandClass, f64, [Vec<u32>; 2])> {
    let weeks = (home.rates.days() / 7.0).max(1.0 / 7.0);
    let row = |command: CommandId| {
        let occurrences = home.rates.occurrences_of_class(command, i64::MIN);
        let mut hours = [[0.0; 24]; 2];
        for occurrence in occurrences.iter() {
            let kind = usize::from(Calendar::is_weekend(occurrence.at.day));
            hours[kind][(occurrence.at.second / 3_600.0) as usize % 24] += occurrence.weight;
        }
        let often = hours.map(|hours| {
            let all: f64 = hours.iter().sum();
            (0..24_u32).zip(hours).filter(|(_, own)| *own > 0.0 && *own >= all / 10.0).map(|(hour, _)| hour).collect()
        });
        let weekly = occurrences.iter().map(|occurrence| occurrence.weight).sum::<f64>() / weeks;
        (home.rates.class(command), weekly, often)
    };
    let classes = home.rates.classes_since(i64::MIN).into_iter();
    let mut usual: Vec<_> = classes.map(row).filter(|(_, weekly, _)| *weekly >= 0.5 / weeks).collect();
    usual.sort_by(|a, b| b.1.total_cmp(&a.1));
    usual.truncate(MOST_LISTED);
    usual
}

/// A command that comes at about the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Routine {
    pub command: CommandClass,
    /// When it came last, as `07:15` by the clock of the home.
    pub at: String,
    /// On how many days it came at about this time.
    pub came: u32,
    /// Of how many days, over which it has been regular.
    pub of: u32,
    /// Of which days: `all`, `weekdays` or `weekends`.
    pub days: &'static str,
}

impl Home {
    /// What is due on the next weekday and the next weekend, by the time of day.
    pub fn routines(&self) -> Vec<Routine> {
        let learned = self.whole_days();
        let Some(last) = learned.last() else { return Vec::new() };
        let next = |weekend: bool| (last + 1..=last + 7).find(|day| Calendar::is_weekend(*day) == weekend);
        let is_routine = |hits: u32, days: u32| f64::from(hits) >= ROUTINE.0 * f64::from(days) && hits >= ROUTINE.1;
        let mut found: Vec<(Slot, &str)> = Vec::new();
        for (weekend, kind) in [(false, "weekdays"), (true, "weekends")] {
            for slot in next(weekend).into_iter().flat_map(|day| due(&self.rates, &learned, day)) {
                let days = if slot.same_kind { kind } else { "all" };
                if !is_routine(slot.hits, slot.days) {
                    continue;
                }
                let known = found.iter_mut().find(|(known, of)| {
                    (*of == days || *of == "all" || days == "all") && known.is_met_by(slot.command, slot.second, 1.0)
                });
                match known {
                    None => found.push((slot, days)),
                    // It comes on the days of the other kind, too, if the days of both kinds say so of them.
                    Some((known, of)) if *of != days && days == "all" => {
                        let (hits, days) = (slot.hits.saturating_sub(known.hits), slot.days.saturating_sub(known.days));
                        if is_routine(hits, days) {
                            (*known, *of) = (slot, "all");
                        }
                    }
                    Some(_) => {}
                }
            }
        }
        found.sort_by(|(a, _), (b, _)| a.second.total_cmp(&b.second));
        let routine = |(slot, days): (Slot, _)| {
            let command = self.rates.class(slot.command);
            Routine { command, at: clock(slot.second), came: slot.hits, of: slot.days, days }
        };
        found.into_iter().map(routine).collect()
    }
}

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
    /// When the home uses each action, the most used first. A command counts by the probability that it had the action; of
    /// those that nothing tells apart, each is taken to be as probable, since their own shares are only what was guessed
    /// before.
    pub fn week(&self) -> Vec<ActionWeek> {
        let mut learned = [[0.0; 24]; 7];
        for day in self.whole_days() {
            for hour in 0..24_u32 {
                let (weekday, hour) = Calendar::hour_of_week(LocalTime { day, second: f64::from(hour) * 3_600.0 });
                learned[weekday][hour] += 1.0;
            }
        }
        let mut sums: BTreeMap<&Arc<str>, [[f64; 24]; 7]> = BTreeMap::new();
        for class in self.rates.classes_since(i64::MIN) {
            let members: Vec<&Actions> =
                self.rates.members(class).filter_map(|member| self.rates.actions(member)).collect();
            let occurrences = self.rates.occurrences_of_class(class, i64::MIN);
            for (action, _) in members.iter().flat_map(|actions| actions.iter()) {
                let hours = sums.entry(action).or_default();
                for occurrence in occurrences.iter() {
                    let (weekday, hour) = Calendar::hour_of_week(occurrence.at);
                    hours[weekday][hour] += occurrence.weight / members.len() as f64;
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

#[cfg(test)]
mod tests;
