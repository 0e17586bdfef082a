//! The search for the heaviest commands: depth first, through all branches that weigh at least a threshold. No command
//! weighs more than its branch, so all commands above the threshold are found. The threshold falls until enough of
//! them are.

use super::branch_weights::{BranchWeights, Steps};
use super::distribution::Distribution;
use crate::target_sums::TargetSum;

/// The first threshold, as a share of the weight of all commands, and by what it falls.
const FIRST_SHARE: f64 = 1e-3;
const FALL: f64 = 8.0;

/// The search ends where the commands that are not found weigh less than this share together...
const NEGLIGIBLE: f64 = 1e-9;

/// ...or where none of them weighs as much as this one.
const MIN_SHARE: f64 = 1e-15;

/// The most branches that are looked at under one threshold, in numbers that their distributions have: a second's work.
const MAX_WORK: usize = 1 << 28;

/// The sums that a command may have, with their weights.
#[derive(Debug)]
pub(crate) struct Targets {
    /// For each sum from 0 on.
    weights: Vec<f64>,
    /// The index of each sum among those given.
    indices: Vec<Option<usize>>,
    ln_scale: f64,
}

impl Targets {
    /// Sums in the scale of a table of weights; those beyond the table are none.
    pub(crate) fn new(sums: &[TargetSum], table: &BranchWeights) -> Self {
        let bytes = |sum: &TargetSum| usize::try_from(sum.bytes).ok().filter(|bytes| *bytes < table.width());
        let length = sums.iter().filter_map(bytes).max().map_or(0, |largest| largest + 1);
        let (mut weights, mut indices) = (vec![0.0; length], vec![None; length]);
        let middle = sums.iter().find_map(bytes).unwrap_or(0) as f64;
        for (index, sum) in sums.iter().enumerate() {
            let Some(bytes) = bytes(sum) else { continue };
            if let (Some(weight), Some(slot)) = (weights.get_mut(bytes), indices.get_mut(bytes)) {
                *weight += sum.weight * (-table.ln_per_byte() * (bytes as f64 - middle)).exp();
                *slot = Some(index);
            }
        }
        Self { weights, indices, ln_scale: -table.ln_per_byte() * middle }
    }

    /// What is to be added to the logarithm of a weight that was found.
    pub(crate) fn ln_scale(&self) -> f64 {
        self.ln_scale
    }
}

/// A command with its weight, which is a multiple of its probability.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WeightedCommand {
    /// The actions that occur, by their indices in the model's list and in that order, and how often.
    pub(crate) actions: Vec<(u32, u32)>,
    pub(crate) weight: f64,
    /// The index of its most probable sum among those given.
    pub(crate) sum: usize,
}

/// The heaviest commands.
#[derive(Debug)]
pub(crate) struct FoundCommands {
    /// Heaviest first.
    pub(crate) commands: Vec<WeightedCommand>,
    /// The weight of all commands, found or not.
    pub(crate) total: f64,
}

/// Finds up to `most` commands that have one of the sums, heaviest first.
pub(crate) fn heaviest_commands(weights: &BranchWeights, targets: &Targets, most: usize) -> FoundCommands {
    let mut search = Search { weights, targets, ways_on: vec![None; weights.states()] };
    let total = search.weight_of(0, 0, &Distribution::zero());
    let mut commands = Vec::new();
    let mut share = FIRST_SHARE;
    while share > MIN_SHARE && total > 0.0 {
        let Some(found) = search.above(share * total) else { break };
        commands = found;
        let weight: f64 = commands.iter().map(|command| command.weight).sum();
        if commands.len() >= most || weight >= (1.0 - NEGLIGIBLE) * total {
            break;
        }
        share /= FALL;
    }
    // Equal ones stay in the order of the search.
    commands.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    commands.truncate(most);
    FoundCommands { commands, total }
}

struct Search<'a> {
    weights: &'a BranchWeights,
    targets: &'a Targets,
    /// For each state that was reached, by its index: the weight of all ways to go on, for each number of bytes so far.
    ways_on: Vec<Option<Vec<f64>>>,
}

/// A layer that is entered, and how far it was searched.
struct Entered<'a> {
    /// The distribution of the bytes so far.
    bytes: Distribution,
    /// The prior's weight so far, before this layer.
    weight: f64,
    steps: Steps<'a>,
    /// How many of the layer's action the next step takes.
    taken: u32,
}

impl<'a> Search<'a> {
    /// All commands of at least this weight; `None` if they are too many to find.
    fn above(&mut self, threshold: f64) -> Option<Vec<WeightedCommand>> {
        let (mut found, mut work) = (Vec::new(), 0);
        let mut path = vec![self.entered(0, 0, Distribution::zero(), 1.0)];
        while let Some(depth) = path.len().checked_sub(1) {
            let Some(entered) = path.last_mut() else { break };
            let Some(step) = entered.steps.next() else {
                path.pop();
                continue;
            };
            if entered.taken > 0 {
                let longer = self.weights.sizes(depth).and_then(|sizes| entered.bytes.plus(sizes, self.most_bytes()));
                let Some(longer) = longer else {
                    path.pop();
                    continue;
                };
                entered.bytes = longer;
            }
            entered.taken += 1;
            work += entered.bytes.weights.len();
            if work > MAX_WORK {
                return None;
            }
            let weight = entered.weight * step.weight;
            let of_branch = weight * self.weight_of(depth + 1, step.next, &entered.bytes);
            // NaN is not above.
            if !(of_branch > 0.0 && of_branch >= threshold) {
                continue;
            }
            let bytes = entered.bytes.clone();
            if depth + 1 == self.weights.layers() {
                let sum = self.most_probable_sum(&bytes);
                found.push(WeightedCommand { actions: self.actions(&path), weight: of_branch, sum });
            } else {
                path.push(self.entered(depth + 1, step.next, bytes, weight));
            }
        }
        Some(found)
    }

    fn entered(&self, layer: usize, state: u32, bytes: Distribution, weight: f64) -> Entered<'a> {
        Entered { bytes, weight, steps: self.weights.steps(layer, state), taken: 0 }
    }

    /// The bytes of the largest target.
    fn most_bytes(&self) -> usize {
        self.targets.weights.len().saturating_sub(1)
    }

    /// The weight of all commands that go on from a state, without the prior's weight before it.
    fn weight_of(&mut self, layer: usize, state: u32, bytes: &Distribution) -> f64 {
        let Some(index) = self.weights.index(layer, state) else { return bytes.product(&self.targets.weights) };
        let (weights, targets) = (self.weights, self.targets);
        self.ways_on.get_mut(index).map_or(0.0, |ways_on| {
            bytes.product(ways_on.get_or_insert_with(|| ways_on_from(weights.row(index), &targets.weights)))
        })
    }

    /// The actions of a path; the last step of each layer is the one before `taken`.
    fn actions(&self, path: &[Entered<'_>]) -> Vec<(u32, u32)> {
        let taken = path.iter().enumerate().filter(|(_, entered)| entered.taken > 1);
        let actions = taken.filter_map(|(layer, entered)| Some((self.weights.action(layer)?, entered.taken - 1)));
        let mut actions: Vec<(u32, u32)> = actions.collect();
        actions.sort_unstable();
        actions
    }

    /// The index of the sum that a command most probably has; the smallest one of equals.
    fn most_probable_sum(&self, bytes: &Distribution) -> usize {
        let mut best = (0.0, 0);
        for (sum, index) in self.targets.indices.iter().enumerate() {
            let weight = self.targets.weights.get(sum).map_or(0.0, |weight| weight * bytes.weight_of(sum));
            if let Some(index) = index.filter(|_| weight > best.0) {
                best = (weight, index);
            }
        }
        best.1
    }
}

/// For each number of bytes so far, the weight of all ways from there to a target: Σ target(s) · row(s − bytes).
fn ways_on_from(row: &[f64], targets: &[f64]) -> Vec<f64> {
    let mut ways_on = vec![0.0; targets.len()];
    for (sum, target) in targets.iter().enumerate().filter(|(_, target)| **target > 0.0) {
        for (way, left) in ways_on.iter_mut().zip(row.get(..=sum).unwrap_or_default().iter().rev()) {
            *way += target * left;
        }
    }
    ways_on
}
