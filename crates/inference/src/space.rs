//! All commands of an inventory with their sizes and prior probabilities, without listing them.
//!
//! The probability of a command is a product over its actions and a factor for the totals of its classes
//! (`weights`). So the actions of a class are summed over first, by their number and size; then the classes are
//! combined. The greatest probability comes from the same recursion as the sum, with a maximum in place of it.

mod device_ways;
mod premises;
mod secret_sums;
mod weights;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sizeleak_model::{Limits, Pmf, choose};

use device_ways::{DeviceWays, WayWeight};
use weights::more_actions;

pub use device_ways::TypeSet;
pub use premises::{Home, MAX_ACTIONS, Premises, PriorName, SpaceError};
pub use secret_sums::{CommandGroup, KEPT, SecretSums, SizeRow};
pub(crate) use secret_sums::{insert, weight_log};
pub use weights::CommandWeights;

/// The most commands that are listed one by one.
pub const MAX_LISTED: f64 = (1 << 21) as f64;

/// The greatest number of bytes of all actions of a command, far below the range of sums.
const MAX_BYTES: i64 = 1 << 40;

/// The most sizes, over all numbers of actions, that are summed over: 200 MB of sums.
const MAX_WIDTH: i64 = 1 << 21;

/// The most combinations of parts that are summed over: some seconds' work.
const MAX_COMBINATIONS: f64 = (1 << 22) as f64;

/// The most pairs of sizes that are looked at: about a minute's work.
const MAX_WORK: f64 = 2e10;

/// All commands of a model's actions that its inventory allows.
#[derive(Debug, Clone)]
pub struct CommandSpace {
    overhead: i64,
    /// The bytes of each action, the most frequent ones if they vary.
    bytes: Vec<i64>,
    limits: Limits,
    weights: CommandWeights,
    /// How actions are given to devices; `None` without an inventory.
    pub(crate) ways: Option<DeviceWays>,
    left_out: f64,
}

/// Actions of one class that are summed over together.
#[derive(Debug, Clone)]
pub struct Part {
    class: usize,
    actions: Vec<usize>,
}

impl Part {
    /// Its actions, by their index.
    pub fn actions(&self) -> &[usize] {
        &self.actions
    }
}

/// Commands that have so many actions of each part.
#[derive(Debug)]
pub struct Combination<'a> {
    pub of_parts: &'a [u32],
    pub of_classes: &'a [u32],
    /// The commands by the bytes of their actions. Weights are to be multiplied by `factor`.
    pub by_bytes: &'a Pmf<SecretSums>,
    /// g(t).
    pub factor: f64,
}

impl CommandSpace {
    /// All commands of a home's actions, as probable as `premises` say.
    pub fn new<'a>(home: impl Into<Home<'a>>, premises: &Premises) -> Result<Self, SpaceError> {
        let home = home.into();
        let smallest = home.actions.iter().map(|action| action.size).min();
        let smallest = smallest.ok_or_else(|| SpaceError::without_sizes(home.inventory))?;
        if home.overhead.saturating_add(smallest) < 0 {
            return Err(SpaceError::NegativeSize { overhead: home.overhead, action: smallest });
        }
        if premises.prior == PriorName::Flat && home.inventory.is_none() {
            return Err(SpaceError::NoInventory("flat"));
        }
        let all = Limits::of(home.inventory, home.actions)?;
        let limits = all.counting(home.max_actions.min(MAX_ACTIONS));
        let weights = CommandWeights::new(&home, &limits, premises)?;
        let bytes: Vec<i64> = home.actions.iter().map(|action| action.size.max(0)).collect();
        let (least, greatest) = (bytes.iter().min().copied().unwrap_or(0), bytes.iter().max().copied().unwrap_or(0));
        // Sums over commands need room for every size; sizes are added up as far as all actions are of the greatest.
        let (apart, most) = (greatest - least, i64::from(limits.max_actions()));
        if apart.saturating_mul(most.pow(2)) > MAX_WIDTH || greatest.saturating_mul(most) > MAX_BYTES {
            return Err(SpaceError::TooWide(apart as usize, limits.max_actions()));
        }
        let weight = if premises.prior == PriorName::Devices { WayWeight::Share } else { WayWeight::One };
        let ways = |inventory| DeviceWays::new(inventory, home.actions, &limits, weight, |device| 1 << device);
        let ways = home.inventory.map(ways).transpose()?;
        let is_cut = all.max_actions().min(home.max_actions) > MAX_ACTIONS;
        let left_out = if is_cut { more_actions(home.prior, premises, MAX_ACTIONS) } else { 0.0 };
        Ok(Self { overhead: home.overhead, bytes, limits, weights, ways, left_out })
    }

    /// The commands in groups that are equal in size and probability, in order of size; `None` if there are more than
    /// [`MAX_LISTED`] commands. Sizes include the overhead, and no ε.
    pub fn groups(&self) -> Option<Vec<CommandGroup>> {
        let parts = self.listed_parts().ok()?;
        let mut groups = Vec::new();
        self.visit_all(&parts, &mut |combination| {
            for (bytes, sums) in combination.by_bytes.iter() {
                let probability = sums.weight * combination.factor;
                groups.push(CommandGroup { bytes: self.size(bytes), commands: 1.0, probability });
            }
        });
        groups.sort_by(|one, other| one.bytes.cmp(&other.bytes).then(other.probability.total_cmp(&one.probability)));
        groups.dedup_by(|next, group| {
            let is_same = next.bytes == group.bytes && next.probability.to_bits() == group.probability.to_bits();
            if is_same {
                group.commands += next.commands;
            }
            is_same
        });
        Some(groups)
    }

    /// All commands by size, however many there are. Sizes include the overhead, and no ε.
    ///
    /// # Errors
    /// [`SpaceError::TooMany`].
    pub fn size_rows(&self) -> Result<Vec<SizeRow>, SpaceError> {
        let parts = self.parts(|_| 0);
        self.check(&parts)?;
        let mut all: BTreeMap<i64, SecretSums> = BTreeMap::new();
        self.visit_all(&parts, &mut |combination| {
            for (bytes, sums) in combination.by_bytes.iter() {
                all.entry(bytes).or_insert(SecretSums::NONE).add(&sums.scaled(combination.factor));
            }
        });
        Ok(all.into_iter().map(|(bytes, sums)| SizeRow::new(self.size(bytes), &sums)).collect())
    }

    pub(crate) fn actions(&self) -> usize {
        self.bytes.len()
    }

    pub fn most_actions(&self) -> u32 {
        self.limits.max_actions()
    }

    /// The probability of commands of more actions, which are left out.
    pub fn left_out(&self) -> f64 {
        self.left_out
    }

    /// The prior probability of a command, the counts of the model's actions; 0 if there is none such.
    pub fn probability(&self, counts: &[u32]) -> f64 {
        let mut totals = vec![0_u32; self.limits.classes()];
        for (action, count) in counts.iter().enumerate() {
            if let Some(total) = totals.get_mut(self.limits.class_of(action)) {
                *total = total.saturating_add(*count);
            }
        }
        let recurring = self.weights.recurring.iter().filter(|(command, _)| command == counts);
        self.weights.by_habit(counts, &totals) + recurring.map(|(_, share)| share).sum::<f64>()
    }

    /// The bytes of a command's actions, the most frequent ones of those that vary.
    pub fn bytes_of(&self, counts: &[u32]) -> i64 {
        self.bytes
            .iter()
            .zip(counts)
            .fold(0, |sum, (bytes, count)| sum.saturating_add(bytes.saturating_mul(i64::from(*count))))
    }

    /// The commands of so many actions, as counts of each, in ascending order of the bytes of their actions.
    pub fn commands_of(&self, actions: u32) -> Vec<(i64, Vec<u32>)> {
        let mut found = vec![(0, Vec::new(), 0)];
        for bytes in &self.bytes {
            let add = |(size, counts, all): (i64, Vec<u32>, u32)| {
                (0..=actions - all)
                    .map(move |count| (size + bytes * i64::from(count), [&counts[..], &[count]].concat(), all + count))
            };
            found = found.into_iter().flat_map(add).collect();
        }
        found.retain(|(_, counts, all)| *all == actions && self.limits.admits(counts));
        let mut found: Vec<(i64, Vec<u32>)> = found.into_iter().map(|(size, counts, _)| (size, counts)).collect();
        found.sort();
        found
    }

    /// The size of a command whose actions have so many bytes.
    pub fn size(&self, bytes: i64) -> u64 {
        u64::try_from(self.overhead.saturating_add(bytes)).unwrap_or(0)
    }

    /// The actions in parts of those that have the same class and the same key.
    pub fn parts<K: Ord>(&self, key: impl Fn(usize) -> K) -> Vec<Part> {
        let mut parts: BTreeMap<(usize, K), Part> = BTreeMap::new();
        for action in 0..self.bytes.len() {
            let class = self.limits.class_of(action);
            let part = parts.entry((class, key(action))).or_insert(Part { class, actions: Vec::new() });
            part.actions.push(action);
        }
        parts.into_values().collect()
    }

    pub fn combinations(&self, parts: &[Part]) -> f64 {
        let of_class = |class: usize| parts.iter().filter(|part| part.class == class).count() as u32;
        let of_classes: Vec<u32> = (0..self.limits.classes()).map(of_class).collect();
        let ways = |totals: &Vec<u32>| -> f64 {
            totals.iter().zip(&of_classes).map(|(total, parts)| choose(total + parts - 1, parts - 1)).product()
        };
        self.weights.of_totals.keys().map(ways).sum()
    }

    /// The actions one by one.
    ///
    /// # Errors
    /// [`SpaceError::TooManyCommands`] if there are more than [`MAX_LISTED`].
    pub fn listed_parts(&self) -> Result<Vec<Part>, SpaceError> {
        let parts = self.parts(|action| action);
        if self.combinations(&parts) > MAX_LISTED { Err(SpaceError::TooManyCommands) } else { Ok(parts) }
    }

    /// Checks that there are not too many combinations of parts.
    pub fn check(&self, parts: &[Part]) -> Result<(), SpaceError> {
        let combinations = self.combinations(parts);
        // Between how many sizes the commands of a combination are.
        let apart = |part: &Part| {
            let bytes = || part.actions.iter().map(|action| self.bytes[*action]);
            bytes().max().unwrap_or(0) - bytes().min().unwrap_or(0)
        };
        let apart: i64 = parts.iter().map(apart).sum();
        let widest = 1.0 + apart as f64 * f64::from(self.limits.max_actions());
        let work = combinations * widest * widest;
        if combinations > MAX_COMBINATIONS || work > MAX_WORK { Err(SpaceError::TooMany) } else { Ok(()) }
    }

    pub fn visit_all(&self, parts: &[Part], visit: &mut dyn FnMut(&Combination<'_>)) {
        let visit = &mut |combination: &Combination<'_>| {
            visit(combination);
            ControlFlow::Continue(())
        };
        let _ = self.visit(parts, visit);
    }

    /// The same, until `visit` breaks.
    pub fn visit(&self, parts: &[Part], visit: &mut dyn FnMut(&Combination<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let of_parts: Vec<Vec<Pmf<SecretSums>>> = parts.iter().map(|part| self.by_number(part)).collect();
        let mut walk = Walk {
            space: self,
            parts: parts.iter().zip(&of_parts).collect(),
            recurring: self.recurring(parts),
            of_parts: Vec::new(),
            of_classes: vec![0; self.limits.classes()],
            visit,
        };
        walk.from(&Pmf::one(0, SecretSums::one(1.0)))
    }

    /// All multisets of the actions of a part, by how many they are and by their bytes.
    fn by_number(&self, part: &Part) -> Vec<Pmf<SecretSums>> {
        let most = self.limits.max_of_class(part.class).min(self.limits.max_actions()) as usize;
        let mut found = vec![Pmf::default(); most + 1];
        found[0] = Pmf::one(0, SecretSums::one(1.0));
        for action in &part.actions {
            let bytes = self.bytes[*action];
            let mut next = vec![Pmf::default(); most + 1];
            for (before, of_others) in found.iter().enumerate() {
                let factors = (0..).zip(&self.weights.of_action[*action]);
                for (next, (count, factor)) in next[before..].iter_mut().zip(factors) {
                    next.add_moved(of_others, bytes * count, *factor);
                }
            }
            found = next;
        }
        found
    }

    /// The commands that recur, by how many actions of each part they have.
    fn recurring(&self, parts: &[Part]) -> BTreeMap<Vec<u32>, Vec<Recurring>> {
        let mut found: BTreeMap<Vec<u32>, Vec<Recurring>> = BTreeMap::new();
        for (counts, share) in &self.weights.recurring {
            let of_part = |part: &Part| part.actions.iter().map(|action| counts[*action]).sum();
            let (mut bytes, mut by_habit) = (0, 1.0);
            for (action, count) in counts.iter().enumerate() {
                bytes += self.bytes[action] * i64::from(*count);
                by_habit *= self.weights.of_action[action][*count as usize];
            }
            let recurring = Recurring { bytes, by_habit, share: *share };
            found.entry(parts.iter().map(of_part).collect()).or_default().push(recurring);
        }
        found
    }
}

#[derive(Debug, Clone, Copy)]
struct Recurring {
    bytes: i64,
    /// Π fₐ(cₐ).
    by_habit: f64,
    share: f64,
}

struct Walk<'a> {
    space: &'a CommandSpace,
    parts: Vec<(&'a Part, &'a Vec<Pmf<SecretSums>>)>,
    recurring: BTreeMap<Vec<u32>, Vec<Recurring>>,
    of_parts: Vec<u32>,
    of_classes: Vec<u32>,
    visit: &'a mut dyn FnMut(&Combination<'_>) -> ControlFlow<()>,
}

impl Walk<'_> {
    /// Adds the parts that follow to the commands of the parts so far.
    fn from(&mut self, before: &Pmf<SecretSums>) -> ControlFlow<()> {
        let Some((part, of_part)) = self.parts.get(self.of_parts.len()).copied() else { return self.reached(before) };
        let others = self.of_classes[part.class];
        for (count, more) in (0..).zip(of_part) {
            self.of_classes[part.class] = others + count;
            if !self.space.limits.admits_totals(&self.of_classes) {
                break;
            }
            self.of_parts.push(count);
            self.from(&before.convolve(more))?;
            self.of_parts.pop();
        }
        self.of_classes[part.class] = others;
        ControlFlow::Continue(())
    }

    fn reached(&mut self, commands: &Pmf<SecretSums>) -> ControlFlow<()> {
        let Some(factor) = self.space.weights.of_totals.get(&self.of_classes).copied() else {
            return ControlFlow::Continue(());
        };
        let mut by_bytes = Cow::Borrowed(commands);
        for Recurring { bytes, by_habit, share } in self.recurring.get(&self.of_parts).into_iter().flatten() {
            let sums = by_bytes.to_mut().get_mut(*bytes);
            if let Some(sums) = sums {
                sums.raise(*by_habit, by_habit + share / factor);
            }
        }
        let (of_parts, of_classes) = (&self.of_parts, &self.of_classes);
        (self.visit)(&Combination { of_parts, of_classes, by_bytes: &by_bytes, factor })
    }
}
