//! Which commands are sent: the paper's experiments and random commands, with random message ids.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::scenario::{CommandSettings, IdDraw, MessageId, Parameter, Recurring, Scenario};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceAction {
    pub(crate) device: u32,
    /// The action's index in [`Scenario::action_names`].
    pub(crate) action: usize,
    /// The choice among the action's parameters; 0 without a parameter.
    pub(crate) parameter: u64,
}

impl DeviceAction {
    /// An action whose parameter is the first choice.
    pub(crate) fn new(device: u32, action: usize) -> Self {
        Self { device, action, parameter: 0 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedCommand {
    /// When; `None` for some time after the one before it.
    pub(crate) time_ns: Option<i64>,
    pub(crate) actions: Vec<DeviceAction>,
    /// Whether nobody meant it.
    pub(crate) is_dummy: bool,
}

impl WantedCommand {
    pub(crate) fn new(time_ns: Option<i64>, actions: Vec<DeviceAction>) -> Self {
        Self { time_ns, actions, is_dummy: false }
    }
}

#[derive(Debug)]
pub(crate) struct CommandGenerator {
    /// The actions of each device, by the device's number.
    devices: Vec<Vec<usize>>,
    actions: usize,
    /// The number of parameters of each action; 0 without.
    choices: Vec<u64>,
    /// Weights of the numbers of actions, from one action on.
    weights: Vec<f64>,
    recurring: Recurring,
    recurring_commands: Vec<Vec<DeviceAction>>,
}

impl CommandGenerator {
    /// A generator whose recurring commands are drawn from `shared`, which all captures have in common.
    pub(crate) fn new(scenario: &Scenario, shared: &mut ChaCha20Rng) -> Self {
        let names = scenario.action_names();
        let mut devices = Vec::new();
        for device in &scenario.devices {
            let index = |action: &String| names.iter().position(|name| name == action);
            let actions: Vec<usize> = device.actions.iter().filter_map(index).collect();
            devices.extend((0..device.count).map(|_| actions.clone()));
        }
        let choices = names.iter().map(|name| {
            let value = scenario.actions.iter().find(|action| action.name == *name);
            value.and_then(|action| action.parameter.as_ref()).map_or(0, Parameter::choices)
        });
        let choices = choices.collect();
        let CommandSettings { most_actions, decay, recurring, .. } = scenario.command;
        let weights = (0..most_actions).map(|further| decay.powf(f64::from(further))).collect();
        let mut generator =
            Self { devices, actions: names.len(), choices, weights, recurring, recurring_commands: Vec::new() };
        let drawn = (0..recurring.commands).map(|_| generator.random_command(shared)).collect();
        generator.recurring_commands = drawn;
        generator
    }

    pub(crate) fn draw_parameters(&self, commands: &mut [WantedCommand], random: &mut ChaCha20Rng) {
        for action in commands.iter_mut().flat_map(|command| &mut command.actions) {
            if let Some(choices) = self.choices.get(action.action).filter(|choices| **choices > 0) {
                action.parameter = random.random_range(0..*choices);
            }
        }
    }

    /// The paper's experiments, `repeats` times: each action on one device, then on two. An action that only one device
    /// has is not doubled.
    pub(crate) fn experiments(&self, repeats: u32, random: &mut ChaCha20Rng) -> Vec<Vec<DeviceAction>> {
        let mut commands = Vec::new();
        for _ in 0..repeats {
            for action in 0..self.actions {
                for count in 1..=2 {
                    let devices = (0_u32..).zip(&self.devices).filter(|(_, actions)| actions.contains(&action));
                    let mut devices: Vec<u32> = devices.map(|(device, _)| device).collect();
                    let (chosen, _) = devices.partial_shuffle(random, count);
                    if chosen.len() == count {
                        commands.push(chosen.iter().map(|device| DeviceAction::new(*device, action)).collect());
                    }
                }
            }
        }
        commands
    }

    /// A random command, or one that recurs, of which `variation` decides.
    pub(crate) fn usual_command(&self, random: &mut ChaCha20Rng, variation: &mut ChaCha20Rng) -> Vec<DeviceAction> {
        let command = self.random_command(random);
        if self.recurring.share <= 0.0 || !variation.random_bool(self.recurring.share) {
            return command;
        }
        let drawn = variation.random_range(0..self.recurring_commands.len().max(1));
        self.recurring_commands.get(drawn).cloned().unwrap_or(command)
    }

    /// Puts dummies before commands, each of which is a usual one, so that each command of all has the probability
    /// `share` to be one.
    pub(crate) fn add_dummies(
        &self,
        commands: Vec<WantedCommand>,
        share: f64,
        variation: &mut ChaCha20Rng,
    ) -> Vec<WantedCommand> {
        let mut sent = Vec::with_capacity(commands.len());
        for command in commands {
            while share > 0.0 && variation.random_bool(share) {
                let mut own = ChaCha20Rng::from_rng(variation);
                let actions = self.usual_command(&mut own, variation);
                sent.push(WantedCommand { is_dummy: true, ..WantedCommand::new(None, actions) });
            }
            sent.push(command);
        }
        sent
    }

    /// A command of a random number of random actions, each on a different device.
    pub(crate) fn random_command(&self, random: &mut ChaCha20Rng) -> Vec<DeviceAction> {
        let mut left = random.random_range(0.0..self.weights.iter().sum::<f64>()) - 1.0;
        let mut count = 1;
        for weight in self.weights.iter().skip(1) {
            if left < 0.0 {
                break;
            }
            left -= weight;
            count += 1;
        }
        let mut devices: Vec<u32> = (0..self.devices.len() as u32).collect();
        let (chosen, _) = devices.partial_shuffle(random, count);
        let mut command = Vec::with_capacity(chosen.len());
        for device in chosen.iter().copied() {
            let actions = self.devices.get(device as usize).map_or(&[][..], Vec::as_slice);
            if let Some(action) = actions.get(random.random_range(0..actions.len().max(1))) {
                command.push(DeviceAction::new(device, *action));
            }
        }
        command
    }

    pub(crate) fn action_count(&self) -> usize {
        self.actions
    }

    pub(crate) fn device_count(&self) -> u32 {
        self.devices.len() as u32
    }

    pub(crate) fn has_action(&self, device: u32, action: usize) -> bool {
        self.devices.get(device as usize).is_some_and(|actions| actions.contains(&action))
    }

    pub(crate) fn device_with(&self, action: usize, random: &mut ChaCha20Rng) -> Option<u32> {
        let able: Vec<u32> = (0..self.device_count()).filter(|device| self.has_action(*device, action)).collect();
        able.get(random.random_range(0..able.len().max(1))).copied()
    }

    pub(crate) fn counts(&self, command: &[DeviceAction]) -> Vec<u32> {
        let mut counts = vec![0; self.actions];
        for device in command {
            if let Some(count) = counts.get_mut(device.action) {
                *count += 1;
            }
        }
        counts
    }
}

/// The probability of each number of digits of a message id.
pub(crate) fn id_widths(id: MessageId) -> Vec<(u32, f64)> {
    // Each further digit means ten times as many numbers.
    let weight = |digits: u32| match id.draw {
        IdDraw::Number => 10_f64.powf(f64::from(digits) - f64::from(id.max_digits)),
        IdDraw::Digits | IdDraw::Growing => 1.0,
    };
    let sum: f64 = (id.min_digits..=id.max_digits).map(weight).sum();
    (id.min_digits..=id.max_digits).map(|digits| (digits, weight(digits) / sum)).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CapturePart {
    Learn,
    Test,
}

/// The id of the command with this index among `count` if ids grow: while learning evenly below twice the smallest
/// number of the fewest digits, while testing from there to the largest number of the most digits.
pub(crate) fn growing_id(id: MessageId, part: CapturePart, index: usize, count: usize) -> u64 {
    let first = 10_u64.saturating_pow(id.min_digits.saturating_sub(1));
    let (start, last) = match part {
        CapturePart::Learn => (first, 2 * first - 1),
        CapturePart::Test => (2 * first, 10_u64.saturating_pow(id.max_digits) - 1),
    };
    let progress = index as f64 / count.saturating_sub(1).max(1) as f64;
    let grown = match part {
        CapturePart::Learn => start as f64 + (last - start) as f64 * progress,
        CapturePart::Test => start as f64 * (last as f64 / start as f64).powf(progress),
    };
    (grown as u64).clamp(start, last)
}

pub(crate) fn random_id(id: MessageId, random: &mut ChaCha20Rng) -> u64 {
    let (fewest, most) = match id.draw {
        IdDraw::Number => (id.min_digits, id.max_digits),
        IdDraw::Digits | IdDraw::Growing => {
            let digits = random.random_range(id.min_digits..=id.max_digits);
            (digits, digits)
        }
    };
    random.random_range(10_u64.pow(fewest - 1)..10_u64.pow(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_commands_use_each_device_at_most_once_and_only_its_actions() {
        let generator = CommandGenerator::new(&Scenario::default(), &mut ChaCha20Rng::seed_from_u64(0));
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let mut sizes = [0_u32; 17];
        for _ in 0..2_000 {
            let command = generator.random_command(&mut random);
            sizes[command.len()] += 1;
            let mut devices: Vec<u32> = command.iter().map(|action| action.device).collect();
            devices.sort_unstable();
            devices.dedup();
            assert_eq!(devices.len(), command.len(), "two actions for one device");
            assert!(command.iter().all(|action| action.action < if action.device < 12 { 4 } else { 7 }));
        }
        // Geometric: a quarter of them has one action, three quarters as many have two.
        assert_eq!(sizes[0], 0);
        assert!((440..580).contains(&sizes[1]), "{sizes:?}");
        assert!((310..450).contains(&sizes[2]), "{sizes:?}");
        assert!(sizes[16] < sizes[8], "{sizes:?}");
    }

    #[test]
    fn recurring_commands_have_their_share_and_change_no_other() {
        let mut scenario = Scenario::default();
        let draw = |scenario: &Scenario| {
            let generator = CommandGenerator::new(scenario, &mut ChaCha20Rng::seed_from_u64(3));
            let (mut random, mut variation) = (ChaCha20Rng::seed_from_u64(1), ChaCha20Rng::seed_from_u64(2));
            let commands = (0..2_000).map(|_| generator.usual_command(&mut random, &mut variation)).collect();
            (generator.recurring_commands, commands)
        };
        let (_, plain): (_, Vec<_>) = draw(&scenario);
        scenario.command.recurring = Recurring { share: 0.4, commands: 5 };
        let (recurring, mixed) = draw(&scenario);
        let same = plain.iter().zip(&mixed).filter(|(one, other)| one == other).count();
        assert!((1_130..1_270).contains(&same), "{same}");
        let others = plain.iter().zip(&mixed).filter(|(one, other)| one != other);
        assert!(others.map(|(_, other)| other).all(|command| recurring.contains(command)));
        let times = |command| mixed.iter().filter(|other| *other == command).count();
        assert!(recurring.iter().all(|command| times(command) > 110), "each of them about as often");
    }

    #[test]
    fn dummies_have_their_share_and_change_no_other_command() {
        let generator = CommandGenerator::new(&Scenario::default(), &mut ChaCha20Rng::seed_from_u64(3));
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let commands: Vec<_> =
            (0..2_000).map(|_| WantedCommand::new(None, generator.random_command(&mut random))).collect();
        let mut add = |share| generator.add_dummies(commands.clone(), share, &mut random);
        assert!(add(0.0).iter().all(|command| !command.is_dummy));
        let sent = add(0.3);
        let real: Vec<_> = sent.iter().filter(|command| !command.is_dummy).cloned().collect();
        assert_eq!(real, commands);
        assert!((750..970).contains(&(sent.len() - 2_000)), "{}", sent.len());
        let dummies = sent.iter().filter(|command| command.is_dummy);
        let single = dummies.filter(|command| command.actions.len() == 1).count() as f64 / (sent.len() - 2_000) as f64;
        assert!((0.18..0.33).contains(&single), "{single}");
    }

    #[test]
    fn experiments_cover_each_action_on_one_and_on_two_devices() {
        let generator = CommandGenerator::new(&Scenario::default(), &mut ChaCha20Rng::seed_from_u64(0));
        let experiments = generator.experiments(2, &mut ChaCha20Rng::seed_from_u64(1));
        let counts: Vec<Vec<u32>> = experiments.iter().map(|command| generator.counts(command)).collect();
        assert_eq!(counts.len(), 28);
        assert_eq!(counts[0], [1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(counts[13], [0, 0, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn growing_ids_pass_through_every_width_while_testing() {
        let id = MessageId { min_digits: 4, max_digits: 7, draw: IdDraw::Growing };
        let ids = |part, count| (0..count).map(|at| growing_id(id, part, at, count)).collect::<Vec<_>>();
        let (learn, test) = (ids(CapturePart::Learn, 200), ids(CapturePart::Test, 400));
        let all = [learn.clone(), test.clone()].concat();
        assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
        assert!(learn.iter().all(|id| id.to_string().len() == 4));
        assert_eq!((test.first(), test.last()), (Some(&2_000), Some(&9_999_999)));
        let of_width = |width| test.iter().filter(|id| id.to_string().len() == width).count();
        assert!((4..=7).all(|width| (70..120).contains(&of_width(width))), "{:?}", [4, 5, 6, 7].map(of_width));
        assert_eq!(ids(CapturePart::Test, 1), [2_000]);
    }

    #[test]
    fn message_ids_have_the_configured_widths() {
        let mut random = ChaCha20Rng::seed_from_u64(1);
        let mut widths = |draw| {
            let id = MessageId { min_digits: 2, max_digits: 4, draw };
            let mut widths = [0; 6];
            (0..3_000).for_each(|_| widths[random_id(id, &mut random).to_string().len()] += 1);
            widths
        };
        let drawn = widths(IdDraw::Number);
        assert_eq!((drawn[1], drawn[5]), (0, 0));
        assert!(drawn[4] > 2_550 && drawn[3] > 200, "{drawn:?}");
        assert!(widths(IdDraw::Digits)[2..5].iter().all(|count| (850..1_150).contains(count)));
    }
}
