//! When commands are sent, and through which connections of the gateway.

use rand_chacha::ChaCha20Rng;

use crate::command_generator::{DeviceAction, random_id};
use crate::random_streams::random_duration;
use crate::scenario::Scenario;
use crate::time::{SECOND, nanoseconds};

/// From the start of the capture to the first connection; with `mid-stream`, before it.
const LEAD: i64 = 2 * SECOND;
/// From a connection's start to its first command, and from its last command to its end.
const SETTLE: i64 = 5 * SECOND;
/// From one connection's end to the next one's start.
const PAUSE: i64 = 2 * SECOND;

/// A command that will be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedCommand {
    pub(crate) time_ns: i64,
    pub(crate) message_id: u64,
    pub(crate) actions: Vec<DeviceAction>,
}

/// A connection and the commands sent through it.
#[derive(Debug)]
pub(crate) struct PlannedConnection {
    pub(crate) open_ns: i64,
    pub(crate) close_ns: i64,
    pub(crate) commands: Vec<PlannedCommand>,
}

/// The gateway's connections in one capture.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) connections: Vec<PlannedConnection>,
}

impl Schedule {
    /// Spreads commands over time and, if the scenario reconnects, over connections.
    pub(crate) fn new(
        scenario: &Scenario,
        start_ns: i64,
        commands: Vec<Vec<DeviceAction>>,
        random: &mut ChaCha20Rng,
    ) -> Self {
        let lead = if scenario.capture.mid_stream { -LEAD - SETTLE } else { LEAD };
        let reconnect = nanoseconds(scenario.session.reconnect_after);
        let after_last = SETTLE + nanoseconds(scenario.replies.delay.max);
        let mut connections = Vec::new();
        let mut open_ns = start_ns + lead;
        let mut time_ns = start_ns.max(open_ns) + SETTLE;
        let mut planned: Vec<PlannedCommand> = Vec::new();
        for actions in commands {
            let is_due = reconnect > 0 && time_ns - open_ns > reconnect;
            if let Some(last) = planned.last().filter(|_| is_due) {
                let close_ns = last.time_ns + after_last;
                connections.push(PlannedConnection { open_ns, close_ns, commands: std::mem::take(&mut planned) });
                open_ns = close_ns + PAUSE;
                time_ns = time_ns.max(open_ns + SETTLE);
            }
            planned.push(PlannedCommand {
                time_ns,
                message_id: random_id(scenario.command.message_id, random),
                actions,
            });
            time_ns += random_duration(scenario.command.interval, random);
        }
        let close_ns = planned.last().map_or(time_ns, |last| last.time_ns) + after_last;
        connections.push(PlannedConnection { open_ns, close_ns, commands: planned });
        Self { start_ns, end_ns: close_ns + SETTLE, connections }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn commands_are_spread_over_consecutive_connections() {
        let mut scenario = Scenario::default();
        scenario.session.reconnect_after = jiff::SignedDuration::from_mins(2);
        let commands = vec![vec![DeviceAction { device: 0, action: 0 }]; 60];
        let schedule = Schedule::new(&scenario, 0, commands, &mut ChaCha20Rng::seed_from_u64(1));
        assert!((4..=7).contains(&schedule.connections.len()));
        assert_eq!(schedule.connections.iter().map(|connection| connection.commands.len()).sum::<usize>(), 60);
        assert!(schedule.connections.is_sorted_by(|one, next| one.close_ns < next.open_ns));
    }
}
