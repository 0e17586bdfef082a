//! A home drawn from a seed: its routines, the commands it uses, and when people are awake.

use jiff::civil::Time;
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, Normal};

use crate::command_generator::{CommandGenerator, DeviceAction};
use crate::scenario::{Days, Routine, Scenario, Sun, TimeOfDay};

/// How many different commands people send freely; the nth most frequent one 1/n as often as the first.
const REPERTOIRE: usize = 16;

#[derive(Debug, Clone)]
pub(super) struct DrawnHome {
    pub(super) routines: Vec<DrawnRoutine>,
    /// The commands that people use.
    repertoire: Vec<Vec<DeviceAction>>,
    /// The action that the home does not use, if it has more than one.
    pub(super) unused_action: Option<usize>,
    /// When people get up and go to bed, in hours of a day.
    awake: [f64; 2],
}

#[derive(Debug, Clone)]
pub(super) struct DrawnRoutine {
    pub(super) days: Days,
    pub(super) at: TimeOfDay,
    /// The standard deviation of its time, in seconds.
    pub(super) jitter: f64,
    pub(super) chance: f64,
    pub(super) commands: Vec<Vec<DeviceAction>>,
    /// The median time between two commands, in seconds.
    pub(super) gap: f64,
    pub(super) is_automation: bool,
}

impl DrawnHome {
    pub(super) fn new(scenario: &Scenario, generator: &CommandGenerator, random: &mut ChaCha20Rng) -> Self {
        let unused_action = (generator.action_count() > 1).then(|| random.random_range(0..generator.action_count()));
        let mut home = Self { routines: Vec::new(), repertoire: Vec::new(), unused_action, awake: [7.0, 23.0] };
        home.repertoire = (0..REPERTOIRE).map(|_| home.new_command(generator, random)).collect();
        home.draw_routines(scenario, generator, random);
        home
    }

    /// The home with other routines of the same people.
    pub(super) fn changed(&self, scenario: &Scenario, generator: &CommandGenerator, random: &mut ChaCha20Rng) -> Self {
        let mut home = self.clone();
        home.routines.clear();
        home.draw_routines(scenario, generator, random);
        home
    }

    fn draw_routines(&mut self, scenario: &Scenario, generator: &CommandGenerator, random: &mut ChaCha20Rng) {
        let settings = &scenario.habits;
        if settings.routines.is_empty() {
            let people: Vec<[f64; 2]> = (0..settings.residents).map(|_| self.add_person(random)).collect();
            let mean = |at: usize| people.iter().map(|hours| hours[at]).sum::<f64>() / people.len().max(1) as f64;
            if !people.is_empty() {
                self.awake = [mean(0), mean(1)];
            }
            for number in 0..settings.automations {
                let routine = self.automation(number, random);
                self.routines.push(routine);
            }
            return;
        }
        let names = scenario.action_names();
        for routine in &settings.routines {
            let routine = given(routine, &names, generator, random);
            self.routines.push(routine);
        }
    }

    /// The routines of one person; returns when they get up and go to bed.
    fn add_person(&mut self, random: &mut ChaCha20Rng) -> [f64; 2] {
        let mut about =
            |mean: f64, deviation: f64| Normal::new(mean, deviation).map_or(mean, |hour| hour.sample(random));
        let (up, home, evening, bed) = (about(6.8, 0.7), about(17.5, 1.0), about(20.0, 0.8), about(22.8, 0.7));
        let (late, leaves) = (about(1.7, 0.4).max(0.3), about(1.0, 0.2).max(0.3));
        let times = [
            (Days::Weekdays, up),
            (Days::Weekdays, up + leaves),
            (Days::Weekdays, home),
            (Days::Weekends, up + late),
            (Days::Daily, evening),
            (Days::Daily, bed),
        ];
        for (days, hour) in times {
            let count = random.random_range(1..=3);
            let commands = (0..count).map(|_| self.usual_command(random)).collect();
            self.routines.push(DrawnRoutine {
                days,
                at: clock(hour),
                jitter: random.random_range(300.0..1_300.0),
                chance: random.random_range(0.72..0.97),
                commands,
                gap: random.random_range(4.0..90.0),
                is_automation: false,
            });
        }
        [up, bed]
    }

    fn automation(&self, number: u32, random: &mut ChaCha20Rng) -> DrawnRoutine {
        let minutes = f64::from(random.random_range(12..280_u32)) * 5.0;
        let by_sun = [Sun::Sunset, Sun::Sunrise].get(number as usize / 2).filter(|_| number.is_multiple_of(2));
        DrawnRoutine {
            days: [Days::Daily, Days::Daily, Days::Weekdays][random.random_range(0..3_usize)],
            at: by_sun.map_or(clock(minutes / 60.0), |sun| TimeOfDay::Sun(*sun)),
            jitter: 1.0,
            chance: 0.995,
            commands: vec![self.usual_command(random)],
            gap: 5.0,
            is_automation: true,
        }
    }

    /// A command that no one has used yet, without the action that the home does not use.
    pub(super) fn new_command(&self, generator: &CommandGenerator, random: &mut ChaCha20Rng) -> Vec<DeviceAction> {
        for _ in 0..100 {
            let command = generator.random_command(random);
            let is_used = command.iter().all(|action| Some(action.action) != self.unused_action);
            if is_used && !self.repertoire.contains(&command) {
                return command;
            }
        }
        generator.random_command(random)
    }

    pub(super) fn usual_command(&self, random: &mut ChaCha20Rng) -> Vec<DeviceAction> {
        let weight = |rank: usize| 1.0 / (rank + 1) as f64;
        let mut left = random.random_range(0.0..(0..self.repertoire.len()).map(weight).sum());
        let drawn = self.repertoire.iter().enumerate().find(|(rank, _)| {
            left -= weight(*rank);
            left <= 0.0
        });
        drawn.or(self.repertoire.iter().enumerate().next()).map(|(_, command)| command.clone()).unwrap_or_default()
    }

    /// A second of a day at which somebody acts, mostly while people are awake; twice as often in the evening.
    pub(super) fn waking_time(&self, is_weekend: bool, nightly: f64, random: &mut ChaCha20Rng) -> f64 {
        let [up, bed] = self.awake;
        let up = up + if is_weekend { 1.0 } else { 0.0 };
        let hour = if random.random_bool(nightly.clamp(0.0, 1.0)) {
            bed + random.random_range(0.0..(24.0 + up - bed).max(0.1))
        } else if random.random_bool(0.45) {
            random.random_range((bed - 6.0).max(up)..bed.max(up + 0.1))
        } else {
            random.random_range(up..bed.max(up + 0.1))
        };
        hour * 3600.0
    }

    /// A second of the night, between an hour after people went to bed and an hour before they get up.
    pub(super) fn night_time(&self, random: &mut ChaCha20Rng) -> f64 {
        let [up, bed] = self.awake;
        let from = (bed + 1.5 - 24.0).max(0.0);
        random.random_range(from..(up - 1.5).max(from + 0.5)) * 3600.0
    }
}

/// The time of day of an hour, to the minute.
fn clock(hour: f64) -> TimeOfDay {
    let minutes = (hour.rem_euclid(24.0) * 60.0) as i32;
    TimeOfDay::Clock(Time::new((minutes / 60) as i8, (minutes % 60) as i8, 0, 0).unwrap_or_default())
}

/// A routine of the scenario, with devices that are drawn once.
fn given(routine: &Routine, names: &[&str], generator: &CommandGenerator, random: &mut ChaCha20Rng) -> DrawnRoutine {
    let commands = routine.commands.iter().map(|counts| {
        let mut free: Vec<u32> = (0..generator.device_count()).collect();
        free.shuffle(random);
        let actions = counts.iter().flat_map(|(name, count)| (0..*count).map(move |_| name.as_str()));
        let actions = actions.filter_map(|name| names.iter().position(|known| *known == name));
        let command = actions.filter_map(|action| {
            let place = free.iter().position(|device| generator.has_action(*device, action))?;
            Some(DeviceAction::new(free.swap_remove(place), action))
        });
        command.collect()
    });
    DrawnRoutine {
        days: routine.days,
        at: routine.at,
        jitter: routine.jitter.as_secs_f64(),
        chance: routine.chance,
        commands: commands.collect(),
        gap: routine.gap.as_secs_f64(),
        is_automation: routine.jitter.is_zero(),
    }
}
