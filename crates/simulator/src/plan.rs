//! Who is told what and when: the commands of a part and the connections they come through.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;

use crate::random::{nanoseconds, within};
use crate::scenario::{CommandSettings, IdDraw, MessageId, Scenario};

const SECOND: i64 = 1_000_000_000;
/// From the start of the capture to the first connection; with `mid-stream`, before it.
const LEAD: i64 = 2 * SECOND;
/// From a connection's start to its first command, and from its last to its end.
const SETTLE: i64 = 5 * SECOND;
/// From one connection's end to the next one's start.
const PAUSE: i64 = 2 * SECOND;

/// A device is told an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceAction {
    /// The device's number, over all kinds.
    pub(crate) device: u32,
    /// The action's place in [`Scenario::action_names`].
    pub(crate) action: usize,
}

/// A command that will be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedCommand {
    pub(crate) time_ns: i64,
    pub(crate) message_id: u64,
    pub(crate) orders: Vec<DeviceAction>,
}

/// A connection and the commands that come through it.
#[derive(Debug)]
pub(crate) struct PlannedConnection {
    pub(crate) open_ns: i64,
    pub(crate) close_ns: i64,
    pub(crate) commands: Vec<PlannedCommand>,
}

/// The connections of a part.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) stretches: Vec<PlannedConnection>,
}

/// The kinds of device with what one needs to choose among them.
#[derive(Debug)]
pub(crate) struct CommandGenerator {
    /// For each device, by number: the actions it can be told.
    devices: Vec<Vec<usize>>,
    actions: usize,
}

impl CommandGenerator {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let names = scenario.action_names();
        let mut devices = Vec::new();
        for device in &scenario.devices {
            let place = |action: &String| names.iter().position(|name| name == action);
            let actions: Vec<usize> = device.actions.iter().filter_map(place).collect();
            devices.extend((0..device.count).map(|_| actions.clone()));
        }
        Self { devices, actions: names.len() }
    }

    /// The paper's experiments, `repeats` times: each action on one device, then on two. An action of which there is
    /// but one device is not doubled.
    pub(crate) fn experiments(&self, repeats: u32, random: &mut ChaCha20Rng) -> Vec<Vec<DeviceAction>> {
        let mut commands = Vec::new();
        for _ in 0..repeats {
            for action in 0..self.actions {
                for count in 1..=2 {
                    let mut able: Vec<u32> = self.able(action);
                    let (chosen, _) = able.partial_shuffle(random, count);
                    if chosen.len() == count {
                        commands.push(chosen.iter().map(|device| DeviceAction { device: *device, action }).collect());
                    }
                }
            }
        }
        commands
    }

    /// A command of a random number of random actions, each on a device of its own.
    pub(crate) fn random(&self, scenario: &Scenario, random: &mut ChaCha20Rng) -> Vec<DeviceAction> {
        let mut count = 1;
        let weights: f64 = (0..scenario.command.most_actions).map(|n| scenario.command.decay.powf(f64::from(n))).sum();
        let mut left = random.random_range(0.0..weights) - 1.0;
        while left >= 0.0 && count < scenario.command.most_actions {
            left -= scenario.command.decay.powf(f64::from(count));
            count += 1;
        }
        let mut devices: Vec<u32> = (0..self.devices.len() as u32).collect();
        let (chosen, _) = devices.partial_shuffle(random, count as usize);
        let mut orders = Vec::with_capacity(chosen.len());
        for device in chosen.iter().copied() {
            let actions = self.devices.get(device as usize).map_or(&[][..], Vec::as_slice);
            if let Some(action) = actions.get(random.random_range(0..actions.len().max(1))) {
                orders.push(DeviceAction { device, action: *action });
            }
        }
        orders
    }

    fn able(&self, action: usize) -> Vec<u32> {
        let devices = (0_u32..).zip(&self.devices);
        devices.filter(|(_, actions)| actions.contains(&action)).map(|(device, _)| device).collect()
    }

    /// How often each action occurs.
    pub(crate) fn counts(&self, orders: &[DeviceAction]) -> Vec<u32> {
        let mut counts = vec![0; self.actions];
        for order in orders {
            if let Some(count) = counts.get_mut(order.action) {
                *count += 1;
            }
        }
        counts
    }
}

impl Schedule {
    /// Spreads commands over time and, where the scenario reconnects, over connections.
    pub(crate) fn new(
        scenario: &Scenario,
        start_ns: i64,
        commands: Vec<Vec<DeviceAction>>,
        random: &mut ChaCha20Rng,
    ) -> Self {
        let lead = if scenario.capture.mid_stream { -LEAD - SETTLE } else { LEAD };
        let reconnect = nanoseconds(scenario.session.reconnect_after);
        let patience = SETTLE + nanoseconds(scenario.replies.delay.max);
        let mut stretches = Vec::new();
        let mut open_ns = start_ns + lead;
        let mut time_ns = start_ns.max(open_ns) + SETTLE;
        let mut waiting: Vec<PlannedCommand> = Vec::new();
        for orders in commands {
            let due = reconnect > 0 && time_ns - open_ns > reconnect;
            if let Some(last) = waiting.last().filter(|_| due) {
                let close_ns = last.time_ns + patience;
                stretches.push(PlannedConnection { open_ns, close_ns, commands: std::mem::take(&mut waiting) });
                open_ns = close_ns + PAUSE;
                time_ns = time_ns.max(open_ns + SETTLE);
            }
            waiting.push(PlannedCommand { time_ns, message_id: number(scenario.command.message_id, random), orders });
            time_ns += within(scenario.command.interval, random);
        }
        let close_ns = waiting.last().map_or(time_ns, |last| last.time_ns) + patience;
        stretches.push(PlannedConnection { open_ns, close_ns, commands: waiting });
        Self { start_ns, end_ns: close_ns + SETTLE, stretches }
    }
}

/// How probable each number of actions of a random command is, from one on.
pub(crate) fn numbers_of_actions(command: &CommandSettings) -> Vec<f64> {
    let weights: Vec<f64> = (0..command.most_actions).map(|n| command.decay.powf(f64::from(n))).collect();
    let all: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / all).collect()
}

/// How probable each number of digits of a message's number is.
pub(crate) fn id_widths(id: MessageId) -> Vec<(u32, f64)> {
    // With so many digits there are nine times a power of ten numbers.
    let weight = |digits: u32| match id.draw {
        IdDraw::Number => 10_f64.powf(f64::from(digits) - f64::from(id.max_digits)),
        IdDraw::Digits => 1.0,
    };
    let all: f64 = (id.min_digits..=id.max_digits).map(weight).sum();
    (id.min_digits..=id.max_digits).map(|digits| (digits, weight(digits) / all)).collect()
}

/// Draws a message's number.
pub(crate) fn number(id: MessageId, random: &mut ChaCha20Rng) -> u64 {
    let fewest = match id.draw {
        IdDraw::Number => id.min_digits,
        IdDraw::Digits => random.random_range(id.min_digits..=id.max_digits),
    };
    let most = match id.draw {
        IdDraw::Number => id.max_digits,
        IdDraw::Digits => fewest,
    };
    random.random_range(10_u64.pow(fewest - 1)..10_u64.pow(most))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn commands_respect_the_home() {
        let scenario = Scenario::default();
        let home = CommandGenerator::new(&scenario);
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let mut sizes = [0_u32; 17];
        for _ in 0..2_000 {
            let orders = home.random(&scenario, &mut random);
            sizes[orders.len()] += 1;
            let mut devices: Vec<u32> = orders.iter().map(|order| order.device).collect();
            devices.sort_unstable();
            devices.dedup();
            assert_eq!(devices.len(), orders.len(), "a device was told twice");
            assert!(orders.iter().all(|order| order.action < if order.device < 12 { 4 } else { 7 }));
        }
        // Geometric: a quarter of them has one action, three quarters as many have two.
        assert_eq!(sizes[0], 0);
        assert!((440..580).contains(&sizes[1]), "{sizes:?}");
        assert!((310..450).contains(&sizes[2]), "{sizes:?}");
        assert!(sizes[16] < sizes[8], "{sizes:?}");
    }

    #[test]
    fn experiments_are_the_papers() {
        let home = CommandGenerator::new(&Scenario::default());
        let experiments = home.experiments(2, &mut ChaCha20Rng::seed_from_u64(1));
        let counts: Vec<Vec<u32>> = experiments.iter().map(|orders| home.counts(orders)).collect();
        assert_eq!(counts.len(), 28);
        assert_eq!(counts[0], [1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(counts[13], [0, 0, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn message_ids_have_the_widths_asked_for() {
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let mut widths = |draw| {
            let id = MessageId { min_digits: 2, max_digits: 4, draw };
            let mut widths = [0; 6];
            (0..3_000).for_each(|_| widths[number(id, &mut random).to_string().len()] += 1);
            widths
        };
        let drawn = widths(IdDraw::Number);
        assert_eq!((drawn[1], drawn[5]), (0, 0));
        assert!(drawn[4] > 2_550 && drawn[3] > 200, "{drawn:?}");
        assert!(widths(IdDraw::Digits)[2..5].iter().all(|count| (850..1_150).contains(count)));
    }

    #[test]
    fn reconnects() {
        let mut scenario = Scenario::default();
        scenario.session.reconnect_after = jiff::SignedDuration::from_mins(2);
        let commands = vec![vec![DeviceAction { device: 0, action: 0 }]; 60];
        let plan = Schedule::new(&scenario, 0, commands, &mut ChaCha20Rng::seed_from_u64(1));
        assert!((4..=7).contains(&plan.stretches.len()));
        assert_eq!(plan.stretches.iter().map(|stretch| stretch.commands.len()).sum::<usize>(), 60);
        assert!(plan.stretches.is_sorted_by(|one, next| one.close_ns < next.open_ns));
    }
}
