//! When commands are sent, and through which connections of the gateway.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use crate::command_generator::{CapturePart, DeviceAction, WantedCommand, growing_id, random_id};
use crate::message_encoder::{App, BodyForm};
use crate::random_streams::{Purpose, SECOND, Seed, nanoseconds, random_duration};
use crate::scenario::{CommandSettings, FirmwareChange, IdDraw, Scenario};

/// From the start of the capture to the first connection; with `mid-stream`, before it.
const LEAD: i64 = 2 * SECOND;
/// From a connection's start to its first command, and from its last command to its end.
const SETTLE: i64 = 5 * SECOND;
/// From one connection's end to the next one's start.
const PAUSE: i64 = 2 * SECOND;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedCommand {
    pub(crate) time_ns: i64,
    pub(crate) message_id: u64,
    pub(crate) form: BodyForm,
    pub(crate) actions: Vec<DeviceAction>,
    /// Whether nobody meant it.
    pub(crate) is_dummy: bool,
}

#[derive(Debug)]
pub(crate) struct PlannedConnection {
    pub(crate) open_ns: i64,
    pub(crate) close_ns: i64,
    pub(crate) commands: Vec<PlannedCommand>,
    /// When the gateway gets new firmware, and the bytes that this adds to bodies.
    pub(crate) firmware: Option<(i64, usize)>,
}

impl PlannedConnection {
    /// The bytes that new firmware adds to a body sent at this time.
    pub(crate) fn added_bytes(&self, time_ns: i64) -> usize {
        self.firmware.filter(|(changed_ns, _)| *changed_ns <= time_ns).map_or(0, |(_, bytes)| bytes)
    }
}

/// The number of commands before the firmware changes, of `count`.
pub(crate) fn before_change(change: FirmwareChange, count: usize) -> usize {
    (change.after * count as f64).ceil() as usize
}

/// The source of randomness of a schedule. What is off by default has its own stream, so that it changes nothing else.
#[derive(Debug)]
pub(crate) struct ScheduleRandom {
    pub(crate) commands: ChaCha20Rng,
    pub(crate) variation: ChaCha20Rng,
}

impl ScheduleRandom {
    pub(crate) fn new(seed: Seed) -> Self {
        Self { commands: seed.stream(Purpose::Commands, 0), variation: seed.stream(Purpose::Variation, 0) }
    }

    /// The time from one command to the next, in nanoseconds.
    fn interval(&mut self, command: &CommandSettings) -> i64 {
        let interval = random_duration(command.interval, &mut self.commands);
        let share = command.overlap.share;
        if share > 0.0 && self.variation.random_bool(share) {
            random_duration(command.overlap.interval, &mut self.variation)
        } else {
            interval
        }
    }

    fn app(&mut self, command: &CommandSettings) -> App {
        let share = command.second_app;
        if share > 0.0 && self.variation.random_bool(share) { App::Second } else { App::First }
    }
}

/// The gateway's connections in one capture.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) end_ns: i64,
    pub(crate) connections: Vec<PlannedConnection>,
}

impl Schedule {
    /// Spreads commands over time and, if the scenario reconnects, over connections.
    pub(crate) fn new(
        scenario: &Scenario,
        part: CapturePart,
        start_ns: i64,
        commands: Vec<WantedCommand>,
        random: &mut ScheduleRandom,
    ) -> Self {
        let lead = if scenario.capture.mid_stream { -LEAD - SETTLE } else { LEAD };
        let reconnect = nanoseconds(scenario.session.reconnect_after);
        let after_last = SETTLE + nanoseconds(scenario.replies.delay.max);
        let mut connections = Vec::new();
        let mut open_ns = start_ns + lead;
        let mut time_ns = start_ns.max(open_ns) + SETTLE;
        let mut planned: Vec<PlannedCommand> = Vec::new();
        let (settings, count) = (&scenario.command, commands.len());
        let change = scenario.firmware_change;
        let has_change = part == CapturePart::Test && change.bytes > 0;
        let change_at = if has_change { before_change(change, count) } else { count };
        let mut firmware = None;
        for (index, WantedCommand { time_ns: wanted_ns, actions, is_dummy }) in commands.into_iter().enumerate() {
            time_ns = wanted_ns.map_or(time_ns, |wanted_ns| wanted_ns.max(open_ns + SETTLE));
            let is_due = reconnect > 0 && time_ns - open_ns > reconnect;
            if let Some(last) = planned.last().filter(|_| is_due) {
                let close_ns = last.time_ns + after_last;
                let commands = std::mem::take(&mut planned);
                connections.push(PlannedConnection { open_ns, close_ns, commands, firmware });
                open_ns = close_ns + PAUSE;
                time_ns = time_ns.max(open_ns + SETTLE);
            }
            if index == change_at {
                firmware = Some((time_ns, change.bytes));
            }
            let message_id = match settings.message_id.draw {
                IdDraw::Growing => growing_id(settings.message_id, part, index, count),
                IdDraw::Number | IdDraw::Digits => random_id(settings.message_id, &mut random.commands),
            };
            let added_bytes = if index < change_at { 0 } else { change.bytes };
            let form = BodyForm { app: random.app(settings), added_bytes };
            planned.push(PlannedCommand { time_ns, message_id, form, actions, is_dummy });
            time_ns += random.interval(settings);
        }
        let close_ns = planned.last().map_or(time_ns, |last| last.time_ns) + after_last;
        connections.push(PlannedConnection { open_ns, close_ns, commands: planned, firmware });
        Self { end_ns: close_ns + SETTLE, connections }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn schedule(scenario: &Scenario, commands: usize) -> Schedule {
        let random = |seed| ChaCha20Rng::seed_from_u64(seed);
        let random = &mut ScheduleRandom { commands: random(1), variation: random(2) };
        let commands = vec![WantedCommand::new(None, vec![DeviceAction::new(0, 0)]); commands];
        Schedule::new(scenario, CapturePart::Test, 0, commands, random)
    }

    #[test]
    fn commands_are_spread_over_consecutive_connections() {
        let mut scenario = Scenario::default();
        scenario.session.reconnect_after = jiff::SignedDuration::from_mins(2);
        let schedule = schedule(&scenario, 60);
        assert!((4..=7).contains(&schedule.connections.len()));
        assert_eq!(schedule.connections.iter().map(|connection| connection.commands.len()).sum::<usize>(), 60);
        assert!(schedule.connections.is_sorted_by(|one, next| one.close_ns < next.open_ns));
    }

    #[test]
    fn a_share_of_commands_follows_closely() {
        let mut scenario = Scenario::default();
        let plain = schedule(&scenario, 1_000);
        scenario.command.overlap.share = 0.3;
        let commands = |schedule: &Schedule| schedule.connections[0].commands.clone();
        let overlapping = commands(&schedule(&scenario, 1_000));
        let gaps = overlapping.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns);
        let (close, far): (Vec<i64>, Vec<i64>) = gaps.partition(|gap| *gap < SECOND);
        assert!((250..350).contains(&close.len()), "{}", close.len());
        assert!(close.iter().all(|gap| (SECOND / 10..=SECOND * 3 / 10).contains(gap)));
        assert!(far.iter().all(|gap| (4 * SECOND..=20 * SECOND).contains(gap)));
        let same = commands(&plain).iter().zip(&overlapping).all(|(one, other)| one.message_id == other.message_id);
        assert!(same, "overlapping commands change nothing but times");
    }

    #[test]
    fn a_share_of_commands_comes_from_the_second_app() {
        let mut scenario = Scenario::default();
        scenario.command.second_app = 0.25;
        let commands = &schedule(&scenario, 1_000).connections[0].commands;
        let second = commands.iter().filter(|command| command.form.app == App::Second).count();
        assert!((200..300).contains(&second), "{second}");
    }

    #[test]
    fn new_firmware_lengthens_bodies_from_a_command_on() {
        let mut scenario = Scenario::default();
        scenario.session.reconnect_after = jiff::SignedDuration::from_mins(2);
        scenario.firmware_change = FirmwareChange { after: 0.4, bytes: 6 };
        let schedule = schedule(&scenario, 60);
        let mut before = 0;
        for connection in &schedule.connections {
            for command in &connection.commands {
                assert_eq!(command.form.added_bytes, connection.added_bytes(command.time_ns));
                before += usize::from(command.form.added_bytes == 0);
            }
        }
        assert_eq!(before, 24);
        let last = schedule.connections.last().unwrap();
        assert_eq!((last.added_bytes(last.open_ns), last.added_bytes(0)), (6, 0));
    }
}
