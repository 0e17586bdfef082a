//! The life of a home over months: which commands come when. People have routines with jitter and act freely beside
//! them, automations come by the clock or by the sun, holidays, a drift and a change make homes that do not stay the
//! same, and attacks add, move or take away commands. An attack has randomness of its own, so that the home without it
//! is the same one.

mod attacks;
mod drawn_home;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, LogNormal, Normal, Poisson};

use crate::SimulateError;
use crate::command_generator::{CommandGenerator, DeviceAction};
use crate::random_streams::{Purpose, Seed};
use crate::scenario::{AttackKind, Days, Scenario, Sun, TimeOfDay};
use crate::time::SECOND;

use drawn_home::{DrawnHome, DrawnRoutine};

const LEAST_GAP: i64 = 2 * SECOND;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LivedCommand {
    pub(crate) time_ns: i64,
    pub(crate) actions: Vec<DeviceAction>,
    origin: Origin,
}

/// Why a command is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A routine of people.
    Routine,
    /// An automation, by its number.
    Automation(usize),
    Free,
    Attack,
}

/// When an attack took place, in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttackTime {
    pub kind: AttackKind,
    pub start_ns: i64,
}

#[derive(Debug)]
pub(crate) struct HomeLife<'a> {
    scenario: &'a Scenario,
    generator: &'a CommandGenerator,
    zone: TimeZone,
    first: Date,
    seed: Seed,
}

impl<'a> HomeLife<'a> {
    /// From the first midnight at or after `start_ns` in the home's time zone.
    pub(crate) fn new(
        scenario: &'a Scenario,
        generator: &'a CommandGenerator,
        start_ns: i64,
        seed: Seed,
    ) -> Result<Self, SimulateError> {
        let fault = SimulateError::encoding("a time of the home");
        let zone = TimeZone::get(&scenario.habits.time_zone).map_err(fault)?;
        let start = Timestamp::from_nanosecond(start_ns.into()).map_err(fault)?;
        let first = zone.to_datetime(start).date().tomorrow().map_err(fault)?;
        Ok(Self { scenario, generator, zone, first, seed })
    }

    /// All commands in order of time, and when attacks took place.
    pub(crate) fn live(&self) -> (Vec<LivedCommand>, Vec<AttackTime>) {
        let mut random = self.seed.stream(Purpose::Habits, 0);
        let mut home = DrawnHome::new(self.scenario, self.generator, &mut random);
        let mut commands = Vec::new();
        for day in 0..self.scenario.habits.days {
            if self.scenario.habits.change == Some(day) {
                home = home.changed(self.scenario, self.generator, &mut self.seed.stream(Purpose::Habits, 1));
            }
            // A stream for each day: what happens on one changes no other.
            self.live_day(day, &home, &mut self.seed.stream(Purpose::Habits, 2 + day), &mut commands);
        }
        commands.sort_by_key(|command| command.time_ns);
        let mut times = Vec::new();
        for (attack, index) in self.scenario.habits.attacks.iter().zip(0..) {
            let random = &mut self.seed.stream(Purpose::Attacks, index);
            times.extend(self.attack(*attack, &home, &mut commands, random));
            commands.sort_by_key(|command| command.time_ns);
        }
        let mut last = i64::MIN;
        for command in &mut commands {
            command.time_ns = command.time_ns.max(last.saturating_add(LEAST_GAP));
            last = command.time_ns;
        }
        (commands, times)
    }

    fn live_day(&self, day: u32, home: &DrawnHome, random: &mut ChaCha20Rng, commands: &mut Vec<LivedCommand>) {
        let habits = &self.scenario.habits;
        let is_away = habits.holidays.iter().any(|away| (away.day..away.day + away.days).contains(&day));
        let is_weekend = self.is_weekend(day);
        for (number, routine) in home.routines.iter().enumerate() {
            let is_due = match routine.days {
                Days::Daily => true,
                Days::Weekdays => !is_weekend,
                Days::Weekends => is_weekend,
            };
            // Drawn whether it is due or not, so that one routine changes nothing of the next.
            let happens = random.random_bool(routine.chance);
            let moved = Normal::new(0.0, routine.jitter).map_or(0.0, |jitter| jitter.sample(random));
            let mut seconds = self.seconds_of_day(routine, day) + moved;
            for actions in &routine.commands {
                let origin = if routine.is_automation { Origin::Automation(number) } else { Origin::Routine };
                if is_due && happens && (routine.is_automation || !is_away) {
                    commands.push(LivedCommand { time_ns: self.time(day, seconds), actions: actions.clone(), origin });
                }
                seconds += LogNormal::new(routine.gap.max(0.1).ln(), 0.4).map_or(routine.gap, |gap| gap.sample(random));
            }
        }
        if is_away || habits.free_commands <= 0.0 {
            return;
        }
        let count = Poisson::new(habits.free_commands).map_or(0.0, |count| count.sample(random));
        for _ in 0..count as u32 {
            let seconds = home.waking_time(is_weekend, habits.nightly, random);
            let actions = home.usual_command(random);
            commands.push(LivedCommand { time_ns: self.time(day, seconds), actions, origin: Origin::Free });
        }
    }

    /// The second of the day at which a routine is due.
    fn seconds_of_day(&self, routine: &DrawnRoutine, day: u32) -> f64 {
        let drift =
            if routine.is_automation { 0.0 } else { self.scenario.habits.drift.as_secs_f64() * f64::from(day) / 7.0 };
        let date = self.first.saturating_add(i64::from(day).days());
        match routine.at {
            TimeOfDay::Clock(time) => {
                f64::from(time.hour()) * 3600.0 + f64::from(time.minute()) * 60.0 + f64::from(time.second()) + drift
            }
            TimeOfDay::Sun(sun) => {
                // The length of a day at 50 degrees north: 12 hours, and up to 4 more or less; the 80th day is in March.
                let angle = (f64::from(date.day_of_year()) - 80.0) / 365.25 * std::f64::consts::TAU;
                let half = 6.0 + 2.0 * angle.sin();
                // Clocks by which people live differ from the sun's in summer: noon is then an hour later.
                let noon = self.noon(date);
                (noon + if sun == Sun::Sunset { half } else { -half }) * 3600.0
            }
        }
    }

    /// The hour at which the sun is highest, as if the zone's standard time were that of the sun.
    fn noon(&self, date: Date) -> f64 {
        let at = |date: Date| {
            self.zone.to_ambiguous_zoned(date.at(12, 0, 0, 0)).compatible().map_or(0, |time| time.offset().seconds())
        };
        let winter = Date::new(date.year(), 1, 1).map_or(0, at).min(Date::new(date.year(), 7, 1).map_or(0, at));
        12.0 + f64::from(at(date) - winter) / 3600.0
    }

    fn is_weekend(&self, day: u32) -> bool {
        self.first.saturating_add(i64::from(day).days()).weekday().to_monday_one_offset() > 5
    }

    /// The time of a second of a day by the home's clock, in nanoseconds since the epoch; days before and after it count
    /// on.
    fn time(&self, day: u32, seconds: f64) -> i64 {
        let local = self.first.saturating_add(i64::from(day).days()).at(0, 0, 0, 0);
        let local = local.saturating_add(SignedDuration::from_secs_f64(seconds.clamp(-86_400.0, 172_800.0)));
        let time = self.zone.to_ambiguous_zoned(local).compatible().map(|time| time.timestamp().as_nanosecond());
        time.ok().and_then(|time| i64::try_from(time).ok()).unwrap_or(i64::MAX)
    }
}
