//! Which command to record next, which devices do its actions, and whether there is need of one.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use sizeleak_learning::fit::ExperimentDesign;
use sizeleak_model::{Action, Device, Inventory, InventoryError, Limits};

use crate::experiment::knowledge::{Covariance, HeldOut, Knowledge};

/// So many checks in a row must find the same sizes, or that there are none: with fewer, sizes that a counter's new digit
/// had moved were taken for settled.
const UNCHANGED_CHECKS: usize = 5;

/// The fewest commands held back that say how a model fits others.
const MIN_HELD_OUT: u64 = 10;

/// The share of commands held back that must have their true actions among the candidates.
const MIN_EXPLAINED: f64 = 0.98;

/// A command held back has at most so many actions, as people command them.
const MAX_USUAL: u32 = 4;

/// Commands to choose among have at most so many actions; longer ones only show where length fields grow.
const MAX_CHOSEN: u32 = 6;

/// Each longer command is recorded so often while length fields are open: fewer are taken for wrong labels.
const LONGER_TIMES: usize = 3;

/// The noise that is expected before anything is known, in bytes: about that of a message number.
const EXPECTED_SPREAD: f64 = 1.0;

/// Where so few sizes are expected to be wrong if ε were any number of bytes, a fit is expected to be certain: ε is whole
/// bytes, mostly the same, so a fit is surer. Experiments on simulated homes ended between 0.3 and 0.9.
const EXPECTED_WRONG: f64 = 0.5;

/// The most commands of an experiment, unless somebody says another number.
pub const MAX_COMMANDS: usize = 400;

/// Sizes are certain where all of them are right with this posterior probability.
const CERTAINTY: f64 = 0.99;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    Learn,
    /// It is held back, and shows how the model fits commands that it has not seen.
    Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCommand {
    /// How often each action occurs, in the order of [`Experiment::actions`].
    pub counts: Vec<u32>,
    pub devices: Vec<DeviceAction>,
    pub half: Half,
    /// Why it was chosen, in words.
    pub why: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Send(PlannedCommand),
    Stop(Stop),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// All sizes are certain, and commands held back fit.
    Settled,
    /// More commands would not help.
    NoGain {
        /// Actions whose sizes stay open.
        tied: Vec<String>,
    },
    /// The sizes are certain but for where length fields grow, which no command of this home can show: all may be off by
    /// the same few bytes.
    OffTogether,
    /// Several checks have found that sums of sizes do not hold, and why.
    WithoutSums(String),
    MaxCommands,
}

#[derive(Debug, Clone)]
pub struct Experiment {
    inventory: Inventory,
    actions: Vec<String>,
    limits: Limits,
    max_commands: usize,
    seed: u64,
    /// What was handed over, whether or not it counts: each draws its own devices.
    attempts: u64,
    learned_from: Vec<Vec<u32>>,
    held_back: usize,
    /// Commands that somebody asked for, to be recorded first.
    asked: Vec<Vec<u32>>,
    knowledge: Option<Knowledge>,
    held_out: Option<HeldOut>,
    unchanged: usize,
    /// How many checks in a row have found that sums do not hold.
    without_sums: usize,
    /// The best certainty so far, and how many commands were learned from since.
    best: (f64, usize),
}

impl Experiment {
    /// An experiment with these devices; the same seed chooses the same commands where the same is known.
    pub fn new(inventory: Inventory, max_commands: usize, seed: u64) -> Result<Self, InventoryError> {
        inventory.check()?;
        let actions: Vec<String> = inventory.action_names().into_iter().map(str::to_owned).collect();
        let named: Vec<Action> = actions.iter().map(|name| Action::new(name, 1)).collect();
        Ok(Self {
            limits: inventory.limits(&named)?,
            inventory,
            actions,
            max_commands,
            seed,
            attempts: 0,
            learned_from: Vec::new(),
            held_back: 0,
            asked: Vec::new(),
            knowledge: None,
            held_out: None,
            unchanged: 0,
            without_sums: 0,
            best: (0.0, 0),
        })
    }

    /// The same, which first records these commands to learn from: those that the inventory allows.
    #[must_use]
    pub fn asked_for(mut self, commands: impl IntoIterator<Item = Vec<u32>>) -> Self {
        self.asked = commands.into_iter().filter(|counts| self.limits.admits(counts)).collect();
        self
    }

    /// The actions, in the order of counts.
    pub fn actions(&self) -> &[String] {
        &self.actions
    }

    /// What is known, after the last check.
    pub fn knowledge(&self) -> Option<&Knowledge> {
        self.knowledge.as_ref()
    }

    /// How the commands held back fit, after the last check that looked.
    pub fn held_out(&self) -> Option<HeldOut> {
        self.held_out
    }

    pub fn commands(&self) -> usize {
        self.learned_from.len() + self.held_back
    }

    /// Notes that a command was handed over; `counts` are `None` if it does not count.
    pub fn add(&mut self, half: Half, counts: Option<&[u32]>) {
        self.attempts += 1;
        let Some(counts) = counts else { return };
        match half {
            Half::Learn => {
                if let Some(at) = self.asked.iter().position(|asked| asked == counts) {
                    self.asked.remove(at);
                }
                self.learned_from.push(counts.to_vec());
                self.best.1 += 1;
            }
            Half::Test => self.held_back += 1,
        }
    }

    /// Notes that a command that was added does not count after all.
    pub fn take_back(&mut self, half: Half, counts: &[u32]) {
        match half {
            Half::Learn => {
                if let Some(at) = self.learned_from.iter().rposition(|other| other == counts) {
                    self.learned_from.remove(at);
                }
            }
            Half::Test => self.held_back = self.held_back.saturating_sub(1),
        }
    }

    /// Notes which of the commands were seen: others are wanted as if they had not been sent.
    pub fn seen(&mut self, learned_from: Vec<Vec<u32>>, held_back: usize) {
        (self.learned_from, self.held_back) = (learned_from, held_back);
    }

    /// Whether it is time to learn: there is a new command to learn from, and each action was commanded.
    pub fn wants_check(&self) -> bool {
        self.best.1 > 0 && self.learned_from.len() > self.actions.len() && self.missing().commands.is_empty()
    }

    /// Whether the sizes look settled, so that the commands held back are to be asked.
    pub fn wants_test(&self) -> bool {
        self.is_certain() && self.held_back as u64 >= MIN_HELD_OUT
    }

    pub fn learned(&mut self, knowledge: Option<Knowledge>) {
        self.unchanged = match (&self.knowledge, &knowledge) {
            (Some(before), Some(now)) if before.has_sizes_of(now) => self.unchanged + 1,
            _ => 0,
        };
        let is_without_sums = knowledge.as_ref().is_some_and(|knowledge| knowledge.without_sums.is_some());
        self.without_sums = if is_without_sums { self.without_sums + 1 } else { 0 };
        let certainty = knowledge.as_ref().map_or(0.0, |knowledge| knowledge.certainty);
        if certainty > self.best.0 || certainty >= CERTAINTY {
            self.best = (certainty.max(self.best.0), 0);
        }
        self.knowledge = knowledge;
    }

    pub fn tested(&mut self, held_out: HeldOut) {
        self.held_out = Some(held_out);
    }

    /// How many more commands are expected, those held back included.
    pub fn expected_commands(&self) -> usize {
        let most = self.max_commands.saturating_sub(self.commands());
        let (mut chosen, mut more) = (self.learned_from.clone(), 0);
        while chosen.len() + more < self.max_commands {
            let ExperimentDesign { commands: missing, undeterminable } = self.missing_for(&chosen);
            if missing.is_empty() && !undeterminable.is_empty() {
                // No command of this home settles these sizes, so it ends for want of gain.
                return (2 * self.patience().saturating_sub(self.best.1)).min(most);
            }
            let Some(counts) = missing.into_iter().next().or_else(|| self.most_telling(&chosen)) else { break };
            chosen.push(counts);
            more += 1;
            let covariance = self.covariance(&chosen);
            if covariance.unsettled() < EXPECTED_WRONG && self.missing_for(&chosen).commands.is_empty() {
                break;
            }
        }
        (2 * more.max(UNCHANGED_CHECKS.saturating_sub(self.unchanged))).min(most)
    }

    /// After so many commands to learn from without a gain there will be none: twice a command for each unknown, and
    /// those that a settled size takes.
    fn patience(&self) -> usize {
        2 * (self.actions.len() + 1) + UNCHANGED_CHECKS + MIN_HELD_OUT as usize
    }

    pub fn next(&self) -> Decision {
        if let Some(stop) = self.stop() {
            return Decision::Stop(stop);
        }
        let mut random = ChaCha20Rng::seed_from_u64(self.seed);
        random.set_stream(self.attempts);
        if self.asked.is_empty() && self.held_back < self.learned_from.len() {
            return Decision::Send(self.usual_command(&mut random));
        }
        let (counts, why) = self.telling_command();
        let actions = self.actions.iter().zip(&counts);
        let names = actions.flat_map(|(name, count)| std::iter::repeat_n(name.as_str(), *count as usize));
        let names: Vec<&str> = names.collect();
        match devices_for(&self.inventory, &names, &mut random) {
            Some(devices) => Decision::Send(PlannedCommand { counts, devices, half: Half::Learn, why }),
            // The limits admit no such command.
            None => Decision::Stop(Stop::NoGain { tied: self.open() }),
        }
    }

    fn stop(&self) -> Option<Stop> {
        if self.commands() >= self.max_commands {
            return Some(Stop::MaxCommands);
        }
        if !self.asked.is_empty() {
            return None;
        }
        let cause = self.knowledge.as_ref().and_then(|knowledge| knowledge.without_sums.clone());
        if let Some(cause) = cause.filter(|_| self.without_sums >= UNCHANGED_CHECKS) {
            return Some(Stop::WithoutSums(cause));
        }
        let fits = self.held_out.is_some_and(|held_out| {
            held_out.commands >= MIN_HELD_OUT
                && (held_out.explained as f64) >= (MIN_EXPLAINED * held_out.commands as f64).floor()
        });
        if self.is_certain() && fits {
            let may_be_off = self.knowledge.as_ref().is_some_and(|knowledge| !knowledge.longer.is_empty());
            return Some(if may_be_off { Stop::OffTogether } else { Stop::Settled });
        }
        let is_hopeless = self.best.1 >= self.patience() || self.unchanged >= self.patience();
        is_hopeless.then(|| Stop::NoGain { tied: self.open() })
    }

    fn is_certain(&self) -> bool {
        let Some(knowledge) = &self.knowledge else { return false };
        let are_longer_recorded = knowledge.longer.iter().all(|counts| self.times(counts) >= LONGER_TIMES);
        knowledge.certainty >= CERTAINTY && are_longer_recorded && self.unchanged >= UNCHANGED_CHECKS
    }

    fn times(&self, counts: &[u32]) -> usize {
        self.learned_from.iter().filter(|other| *other == counts).count()
    }

    fn open(&self) -> Vec<String> {
        let is_open = |action: &&String| {
            let sizes = self.knowledge.iter().flat_map(|knowledge| &knowledge.sizes);
            let mut own = sizes.filter(|size| size.action == **action);
            own.next().is_none_or(|size| size.interval[0] != size.interval[1])
        };
        self.actions.iter().filter(is_open).cloned().collect()
    }

    fn missing(&self) -> ExperimentDesign {
        self.missing_for(&self.learned_from)
    }

    fn missing_for(&self, commands: &[Vec<u32>]) -> ExperimentDesign {
        ExperimentDesign::missing(self.actions.len(), commands.iter().map(Vec::as_slice), &self.limits)
    }

    fn telling_command(&self) -> (Vec<u32>, String) {
        if let Some(asked) = self.asked.first() {
            return (asked.clone(), "asked for".to_owned());
        }
        let ExperimentDesign { commands: missing, undeterminable } = self.missing();
        if let Some(counts) = missing.into_iter().next() {
            return (counts, "without it sizes cannot be told apart".to_owned());
        }
        let longer = self.knowledge.iter().flat_map(|knowledge| &knowledge.longer);
        let rarest = longer.min_by_key(|counts| self.times(counts));
        if let Some(longer) = rarest.filter(|counts| self.times(counts) < LONGER_TIMES) {
            return (longer.clone(), "it shows where length fields grow".to_owned());
        }
        let now = self.covariance(&self.learned_from);
        let counts = self.most_telling(&self.learned_from).unwrap_or_else(|| vec![0; self.actions.len()]);
        if !undeterminable.is_empty() {
            return (counts, "this home has no command that tells its sizes apart".to_owned());
        }
        let (before, after) = (now.unsettled(), now.unsettled_after(&counts));
        (counts, format!("of {before:.3} sizes expected to be wrong it leaves {after:.3}"))
    }

    fn covariance(&self, commands: &[Vec<u32>]) -> Covariance {
        let spread = self.knowledge.as_ref().map_or(EXPECTED_SPREAD, |knowledge| knowledge.spread);
        Covariance::after(self.actions.len(), spread, commands.iter().map(Vec::as_slice))
    }

    /// The command of at most [`MAX_CHOSEN`] actions after which fewest sizes are expected to be wrong, built action by
    /// action; of equal ones the shortest.
    fn most_telling(&self, commands: &[Vec<u32>]) -> Option<Vec<u32>> {
        let covariance = self.covariance(commands);
        let (mut best, mut counts) = (None::<(f64, Vec<u32>)>, vec![0; self.actions.len()]);
        for _ in 0..MAX_CHOSEN {
            let longer = (0..self.actions.len()).filter_map(|at| {
                let mut longer: Vec<u32> = counts.clone();
                *longer.get_mut(at)? += 1;
                self.limits.admits(&longer).then(|| (covariance.unsettled_after(&longer), longer))
            });
            let Some(longer) = longer.min_by(|one, other| one.0.total_cmp(&other.0)) else { break };
            counts.clone_from(&longer.1);
            if best.as_ref().is_none_or(|best| longer.0 < best.0) {
                best = Some(longer);
            }
        }
        best.map(|(_, counts)| counts)
    }

    /// A command as people send them: some devices, each with one of its actions.
    fn usual_command(&self, random: &mut ChaCha20Rng) -> PlannedCommand {
        let types = self.inventory.devices.iter();
        let mut devices: Vec<(&str, u32, &[String])> = types
            .flat_map(|device| (0..device.count).map(|at| (device.name.as_str(), at, device.actions.as_slice())))
            .collect();
        devices.shuffle(random);
        let many = random.random_range(1..=MAX_USUAL.min(self.limits.max_actions()).max(1));
        let chosen = devices.into_iter().take(many as usize).filter_map(|(device, index, actions)| {
            let action = actions.choose(random)?.clone();
            Some(DeviceAction { device: device.to_owned(), index, action })
        });
        let devices: Vec<DeviceAction> = chosen.collect();
        let count = |name: &String| devices.iter().filter(|device| device.action == *name).count() as u32;
        let counts = self.actions.iter().map(count).collect();
        PlannedCommand { counts, devices, half: Half::Test, why: "held back for the test".to_owned() }
    }
}

/// An action of one device, as the program that sends commands is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceAction {
    /// The type of device, as in the inventory.
    pub device: String,
    /// Which device of this type, from 0.
    pub index: u32,
    pub action: String,
}

/// Devices for actions, others each time, so that identifiers and states vary; `None` if there are not enough.
fn devices_for(inventory: &Inventory, actions: &[&str], random: &mut ChaCha20Rng) -> Option<Vec<DeviceAction>> {
    let types = inventory.devices.iter();
    let mut devices: Vec<(&Device, u32)> =
        types.flat_map(|device| (0..device.count).map(move |index| (device, index))).collect();
    devices.shuffle(random);
    let can = |device: usize, action: usize| devices[device].0.actions.iter().any(|name| name == actions[action]);
    // A matching of actions with devices: each action takes a free device, or one whose action finds another device.
    let mut taken: Vec<Option<usize>> = vec![None; devices.len()];
    for action in 0..actions.len() {
        let mut tried = vec![false; devices.len()];
        if !take(action, &can, &mut taken, &mut tried) {
            return None;
        }
    }
    let chosen = devices.iter().zip(&taken).filter_map(|((device, index), action)| {
        Some(DeviceAction { device: device.name.clone(), index: *index, action: actions[(*action)?].to_owned() })
    });
    Some(chosen.collect())
}

fn take(action: usize, can: &dyn Fn(usize, usize) -> bool, taken: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for device in 0..taken.len() {
        if !can(device, action) || std::mem::replace(&mut tried[device], true) {
            continue;
        }
        if taken[device].is_none_or(|other| take(other, can, taken, tried)) {
            taken[device] = Some(action);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
