//! What attacks do to the commands of a home.

use jiff::civil::Time;
use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::drawn_home::DrawnHome;
use super::{AttackTime, HomeLife, LivedCommand, Origin};
use crate::command_generator::DeviceAction;
use crate::scenario::{Attack, AttackKind};
use crate::time::{DAY, SECOND};

const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

impl HomeLife<'_> {
    /// Carries out an attack; `None` if the home gives no occasion for it.
    pub(super) fn attack(
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
