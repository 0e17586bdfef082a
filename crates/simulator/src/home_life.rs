//! The life of a home over months: which commands come when. People have routines with jitter and act freely beside
//! them, automations come by the clock or by the sun, holidays, a drift and a change make homes that do not stay the
//! same, and attacks add, move or take away commands. An attack has randomness of its own, so that the home without it
//! is the same one. In place of all this, the rhythm of a real home may be played from a file.

mod drawn_home;

use std::collections::BTreeMap;

use drawn_home::{DrawnHome, DrawnRoutine};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, LogNormal, Normal, Poisson};

use crate::SimulateError;
use crate::command_generator::{CommandGenerator, DeviceAction, WantedCommand};
use crate::random_streams::{DAY, Purpose, SECOND, Seed};
use crate::scenario::{Attack, AttackKind, Days, DeviceKind, PlayedAction, Scenario, Sun, TimeOfDay};

const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const LEAST_GAP: i64 = 2 * SECOND;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LivedCommand {
    pub(crate) time_ns: i64,
    pub(crate) actions: Vec<DeviceAction>,
    origin: Origin,
}

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

/// What attacks do to the commands of a home.
impl HomeLife<'_> {
    /// Carries out an attack; `None` if the home gives no occasion for it.
    fn attack(
        &self,
        Attack { kind, day, at }: Attack,
        home: &DrawnHome,
        commands: &mut Vec<LivedCommand>,
        random: &mut ChaCha20Rng,
    ) -> Option<AttackTime> {
        let usual = match kind {
            AttackKind::NightCommand => home.night_time(random),
            AttackKind::DeadGateway => random.random_range(7.0..20.0) * 3600.0,
            _ => home.waking_time(self.is_weekend(day), 0.0, random),
        };
        let second = |at: Time| at.duration_since(Time::midnight()).as_secs_f64();
        let start_ns = self.time(day, at.map_or(usual, second));
        let mut spread = |count, length, command: &dyn Fn(&mut ChaCha20Rng) -> Vec<DeviceAction>| {
            for place in 0..count {
                let time_ns = start_ns + if place == 0 { 0 } else { random.random_range(0..length) };
                commands.push(LivedCommand { time_ns, actions: command(random), origin: Origin::Attack });
            }
            Some(start_ns)
        };
        let start_ns = match kind {
            AttackKind::Burst => spread(10, MINUTE, &|random| self.generator.random_command(random)),
            AttackKind::SlowBurst => spread(15, 75 * MINUTE, &|random| self.generator.random_command(random)),
            AttackKind::StolenAccount => spread(8, 3 * HOUR, &|random| home.new_command(self.generator, random)),
            AttackKind::NightCommand => spread(1, 0, &|random| home.usual_command(random)),
            AttackKind::NewAction => {
                let action = home.unused_action?;
                let act = |device| DeviceAction::new(device, action);
                spread(1, 0, &|random| self.generator.device_with(action, random).map(act).into_iter().collect())
            }
            AttackKind::DeadGateway => {
                commands.retain(|command| !(start_ns..start_ns + DAY).contains(&command.time_ns));
                Some(start_ns)
            }
            AttackKind::Replay => self.replay(day, commands),
            AttackKind::ShiftedRoutine => self.shift(day, commands),
            AttackKind::StoppedAutomation => self.stop_automation(day, home, commands, random),
        };
        Some(AttackTime { kind, start_ns: start_ns? })
    }

    /// The time of a day that begins when people sleep.
    fn day(&self, day: u32) -> std::ops::Range<i64> {
        self.time(day, 4.0 * 3600.0)..self.time(day + 1, 4.0 * 3600.0)
    }

    /// A command of the day before, at the same time of the day.
    fn replay(&self, day: u32, commands: &mut Vec<LivedCommand>) -> Option<i64> {
        let before = self.day(day.checked_sub(1)?);
        let usual =
            commands.iter().find(|command| command.origin == Origin::Routine && before.contains(&command.time_ns))?;
        let replayed =
            LivedCommand { time_ns: usual.time_ns + DAY, actions: usual.actions.clone(), origin: Origin::Attack };
        let time_ns = replayed.time_ns;
        commands.push(replayed);
        Some(time_ns)
    }

    /// Moves what people do routinely by four hours.
    fn shift(&self, day: u32, commands: &mut [LivedCommand]) -> Option<i64> {
        let whole = self.day(day);
        let moved =
            commands.iter_mut().filter(|command| command.origin == Origin::Routine && whole.contains(&command.time_ns));
        let mut first = None;
        for command in moved {
            first.get_or_insert(command.time_ns);
            command.time_ns += 4 * HOUR;
        }
        first
    }

    /// Takes an automation away from the day on.
    fn stop_automation(
        &self,
        day: u32,
        home: &DrawnHome,
        commands: &mut Vec<LivedCommand>,
        random: &mut ChaCha20Rng,
    ) -> Option<i64> {
        let automations: Vec<usize> = (0..home.routines.len()).filter(|at| home.routines[*at].is_automation).collect();
        let stopped = Origin::Automation(*automations.get(random.random_range(0..automations.len().max(1)))?);
        let from = self.day(day).start;
        let first = commands.iter().find(|command| command.origin == stopped && command.time_ns >= from)?.time_ns;
        commands.retain(|command| command.origin != stopped || command.time_ns < first);
        Some(first)
    }
}

const WEEK: i64 = 7 * DAY;

impl Scenario {
    /// Takes devices and commands from a sequence: CSV with the columns `time` (RFC 3339, or a local time, taken in the
    /// home's time zone), `device` and `action`, in order of time. The devices replace the scenario's; those with the
    /// same actions are of one kind, which has the name of the first.
    pub fn play(&mut self, sequence: &str) -> Result<(), SimulateError> {
        let zone = TimeZone::get(&self.habits.time_zone).unwrap_or(TimeZone::UTC);
        let mut actions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut events = Vec::new();
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(sequence.as_bytes());
        for (row, line) in reader.deserialize().zip(2_u64..) {
            let fault = |reason: String| {
                let needed = "it needs the columns time, device and action";
                SimulateError(format!("the sequence, line {line}: {reason}; {needed}"))
            };
            let (time, device, action): (String, String, String) = row.map_err(|error| fault(error.to_string()))?;
            let time_ns = parsed(&time, &zone).ok_or_else(|| fault(format!("`{time}` is not a time")))?;
            let of_device = actions.entry(device.clone()).or_default();
            if !of_device.contains(&action) {
                of_device.push(action.clone());
            }
            events.push((time_ns, device, action));
        }
        events.sort_by_key(|(time_ns, ..)| *time_ns);
        let mut kinds: Vec<(DeviceKind, Vec<String>)> = Vec::new();
        for (device, mut actions) in actions {
            actions.sort_unstable();
            match kinds.iter_mut().find(|(kind, _)| kind.actions == actions) {
                Some((kind, members)) => {
                    kind.count += 1;
                    members.push(device);
                }
                None => kinds.push((DeviceKind { name: device.clone(), count: 1, actions }, vec![device])),
            }
        }
        let numbers: BTreeMap<&String, u32> = kinds.iter().flat_map(|(_, members)| members).zip(0..).collect();
        let played = |(time_ns, device, action): (i64, String, String)| {
            Some(PlayedAction { time_ns, device: *numbers.get(&device)?, action })
        };
        self.sequence = events.into_iter().filter_map(played).collect();
        self.devices = kinds.into_iter().map(|(kind, _)| kind).collect();
        self.command.most_actions = self.command.most_actions.min(self.device_count());
        let is_used = |name: &String| self.devices.iter().any(|device| device.actions.contains(name));
        self.actions.retain(|action| is_used(&action.name));
        if let Some(first) = self.sequence.first() {
            // So that the commands to learn from come the day before.
            let before = Timestamp::from_nanosecond(i128::from(first.time_ns)).ok();
            let before = before.and_then(|first| first.checked_sub(SignedDuration::from_hours(36)).ok());
            self.epoch = before.unwrap_or(self.epoch);
        }
        Ok(self.check()?)
    }

    /// The commands of the sequence, from `start_ns` on: later by whole weeks where they would begin before it.
    pub(crate) fn played_commands(&self, start_ns: i64) -> Vec<WantedCommand> {
        let names = self.action_names();
        let first = self.sequence.first().map_or(start_ns, |event| event.time_ns);
        let later = (start_ns - first).max(0).div_euclid(WEEK) + i64::from(start_ns > first);
        let command = |event: &PlayedAction| {
            let action = names.iter().position(|name| *name == event.action)?;
            Some(WantedCommand::new(Some(event.time_ns + later * WEEK), vec![DeviceAction::new(event.device, action)]))
        };
        self.sequence.iter().filter_map(command).collect()
    }
}

/// Reads a time; nanoseconds since the epoch.
fn parsed(text: &str, zone: &TimeZone) -> Option<i64> {
    let local = || text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok().map(|time| time.timestamp());
    let time = text.parse::<Timestamp>().ok().or_else(local)?;
    i64::try_from(time.as_nanosecond()).ok()
}
