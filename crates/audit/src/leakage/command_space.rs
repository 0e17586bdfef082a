//! All commands of an inventory with their sizes and prior probabilities, without listing them.
//!
//! The probability of a command is a product over its actions and a factor for the totals of its classes
//! (`weights`). So the actions of a class are summed over first, by their number and size; then the classes are
//! combined. The greatest probability comes from the same recursion as the sum, with a maximum in place of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sizeleak_model::{Limits, Model, choose};

use crate::leakage::command_group::CommandGroup;
use crate::leakage::device_ways::{ActionWeight, DeviceWays, KindSet};
use crate::leakage::error::LeakageError;
use crate::leakage::premises::{Premises, PriorKind};
use crate::leakage::secret_sums::SecretSums;
use crate::leakage::size_row::SizeRow;
use crate::leakage::spread::Spread;
use crate::leakage::weights::{CommandWeights, more_actions};

/// Commands of more actions are left out.
const MOST_ACTIONS: u32 = 64;

/// The most commands that are listed one by one.
pub const MAX_LISTED: f64 = (1 << 21) as f64;

/// The greatest number of bytes of all actions of a command.
const MAX_BYTES: usize = 1 << 40;

/// The most sizes, over all numbers of actions, that are summed over.
const MAX_WIDTH: usize = 1 << 21;

/// The most combinations of parts that are summed over.
const MAX_COMBINATIONS: f64 = (1 << 22) as f64;

/// The most pairs of sizes that are looked at: about a minute's work.
const MAX_WORK: f64 = 2e10;

/// All commands of a model's actions that its inventory allows.
#[derive(Debug, Clone)]
pub struct CommandSpace {
    overhead: i64,
    /// The bytes of each action, the most frequent ones if they vary.
    bytes: Vec<usize>,
    limits: Limits,
    weights: CommandWeights,
    /// How actions are given to devices; `None` without an inventory.
    ways: Option<DeviceWays>,
    left_out: f64,
}

/// Actions of one class that are summed over together.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    class: usize,
    actions: Vec<usize>,
}

impl Part {
    /// Its actions, by their index.
    pub(crate) fn actions(&self) -> &[usize] {
        &self.actions
    }
}

/// Commands that have so many actions of each part.
#[derive(Debug)]
pub(crate) struct Combination<'a> {
    /// How many actions of each part.
    pub(crate) of_parts: &'a [u32],
    /// How many actions of each class.
    pub(crate) of_classes: &'a [u32],
    /// By the bytes of the actions; to be multiplied by `factor`.
    pub(crate) spread: &'a Spread,
    /// g(t).
    pub(crate) factor: f64,
}

impl CommandSpace {
    /// All commands of a model's actions, as probable as `premises` say.
    ///
    /// # Errors
    /// [`LeakageError`].
    pub fn new(model: &Model, premises: &Premises) -> Result<Self, LeakageError> {
        let smallest = model.actions.iter().map(|action| action.size).min().ok_or(LeakageError::NoSizes)?;
        if model.overhead.saturating_add(smallest) < 0 {
            return Err(LeakageError::NegativeSize { overhead: model.overhead, action: smallest });
        }
        if premises.prior == PriorKind::Flat && model.inventory.is_none() {
            return Err(LeakageError::NoInventory("flat"));
        }
        let limits = model.limits()?.counting(MOST_ACTIONS);
        let weights = CommandWeights::new(model, &limits, premises)?;
        let bytes: Vec<usize> =
            model.actions.iter().map(|action| usize::try_from(action.size).unwrap_or(usize::MAX)).collect();
        check_width(&bytes, limits.max_actions())?;
        let ways = DeviceWays::new(model, &limits, &ActionWeight::of(premises.prior))?;
        let is_cut = model.limits()?.max_actions() > MOST_ACTIONS;
        let left_out = if is_cut { more_actions(model, premises, MOST_ACTIONS) } else { 0.0 };
        Ok(Self { overhead: model.overhead, bytes, limits, weights, ways, left_out })
    }

    /// The commands in groups that are equal in size and probability, in order of size; `None` if there are more than
    /// [`MAX_LISTED`] commands. Sizes include the overhead, and no ε.
    pub fn groups(&self) -> Option<Vec<CommandGroup>> {
        let parts = self.listed_parts().ok()?;
        let mut groups = Vec::new();
        self.visit_all(&parts, |_| true, &mut |combination| {
            for (bytes, sums) in combination.spread.cells() {
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
    /// [`LeakageError::TooMany`].
    pub fn size_rows(&self) -> Result<Vec<SizeRow>, LeakageError> {
        let parts = self.parts(|_| 0);
        self.check(&parts)?;
        let mut by_bytes: BTreeMap<usize, SecretSums> = BTreeMap::new();
        self.visit_all(&parts, |_| true, &mut |combination| {
            for (bytes, sums) in combination.spread.cells() {
                by_bytes.entry(bytes).or_insert(SecretSums::NONE).add(&sums.scaled(combination.factor));
            }
        });
        let row = |(bytes, sums): (usize, SecretSums)| SizeRow {
            bytes: self.size(bytes),
            commands: sums.count,
            probability: sums.weight,
            greatest: sums.greatest.first().copied().unwrap_or(0.0),
            plogp: sums.weighted_log,
        };
        Ok(by_bytes.into_iter().map(row).collect())
    }

    /// The most actions of a command.
    pub fn most_actions(&self) -> u32 {
        self.limits.max_actions()
    }

    /// The probability of commands of more actions, which are left out.
    pub fn left_out(&self) -> f64 {
        self.left_out
    }

    /// The prior probability of a command, the counts of the model's actions; 0 if there is none such.
    pub fn probability(&self, counts: &[u32]) -> f64 {
        let mut of_classes = vec![0_u32; self.limits.classes()];
        let mut product = 1.0;
        for (action, count) in counts.iter().enumerate() {
            let factor = self.weights.of_action.get(action).and_then(|factors| factors.get(*count as usize));
            let Some(factor) = factor else { return 0.0 };
            product *= factor;
            if let Some(total) = of_classes.get_mut(self.limits.class_of(action)) {
                *total = total.saturating_add(*count);
            }
        }
        product * self.weights.of_totals.get(&of_classes).copied().unwrap_or(0.0)
    }

    /// The bytes of an action, the most frequent ones if they vary.
    pub(crate) fn bytes_of(&self, action: usize) -> usize {
        self.bytes.get(action).copied().unwrap_or(0)
    }

    /// The commands of so many actions, as counts of each, in ascending order of the bytes of their actions.
    pub(crate) fn commands_of(&self, actions: u32) -> Vec<(usize, Vec<u32>)> {
        let mut found = vec![(0, Vec::new(), 0)];
        for bytes in &self.bytes {
            let add = |(size, counts, all): (usize, Vec<u32>, u32)| {
                (0..=actions - all)
                    .map(move |count| (size + bytes * count as usize, [&counts[..], &[count]].concat(), all + count))
            };
            found = found.into_iter().flat_map(add).collect();
        }
        found.retain(|(_, counts, all)| *all == actions && self.limits.admits(counts));
        let mut found: Vec<(usize, Vec<u32>)> = found.into_iter().map(|(size, counts, _)| (size, counts)).collect();
        found.sort();
        found
    }

    /// The size of a command whose actions have so many bytes.
    pub(crate) fn size(&self, bytes: usize) -> u64 {
        u64::try_from(self.overhead.saturating_add_unsigned(bytes as u64)).unwrap_or(0)
    }

    /// The actions in parts of those that have the same class and the same key.
    pub(crate) fn parts<K: Ord>(&self, key: impl Fn(usize) -> K) -> Vec<Part> {
        let mut parts: BTreeMap<(usize, K), Part> = BTreeMap::new();
        for action in 0..self.bytes.len() {
            let class = self.limits.class_of(action);
            let part = parts.entry((class, key(action))).or_insert(Part { class, actions: Vec::new() });
            part.actions.push(action);
        }
        parts.into_values().collect()
    }

    /// How many combinations of parts there are.
    pub(crate) fn combinations(&self, parts: &[Part]) -> f64 {
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
    /// [`LeakageError::TooManyCommands`] if there are more than [`MAX_LISTED`].
    pub(crate) fn listed_parts(&self) -> Result<Vec<Part>, LeakageError> {
        let parts = self.parts(|action| action);
        if self.combinations(&parts) > MAX_LISTED { Err(LeakageError::TooManyCommands) } else { Ok(parts) }
    }

    /// Checks that there are not too many combinations of parts.
    pub(crate) fn check(&self, parts: &[Part]) -> Result<(), LeakageError> {
        let combinations = self.combinations(parts);
        // Between how many sizes the commands of a combination are.
        let apart: usize = parts.iter().map(|part| self.bytes_apart(part)).sum();
        let widest = 1.0 + apart as f64 * f64::from(self.limits.max_actions());
        let work = combinations * widest * widest;
        if combinations > MAX_COMBINATIONS || work > MAX_WORK { Err(LeakageError::TooMany) } else { Ok(()) }
    }

    /// How far apart the sizes of a part's actions are, in bytes.
    fn bytes_apart(&self, part: &Part) -> usize {
        let bytes = || part.actions.iter().filter_map(|action| self.bytes.get(*action));
        bytes().max().copied().unwrap_or(0) - bytes().min().copied().unwrap_or(0)
    }

    /// Whether it is known which kinds of device there are.
    pub(crate) fn has_kinds(&self) -> bool {
        self.ways.is_some()
    }

    /// How probable each set of kinds of device is, given the totals of the classes.
    pub(crate) fn kind_shares(&self, of_classes: &[u32]) -> Vec<(KindSet, f64)> {
        self.ways.as_ref().map_or_else(Vec::new, |ways| ways.shares(of_classes))
    }

    /// Calls `visit` with each combination of parts. Of actions that are not `sized`, no bytes are counted.
    pub(crate) fn visit_all(
        &self,
        parts: &[Part],
        sized: impl Fn(usize) -> bool,
        visit: &mut dyn FnMut(&Combination<'_>),
    ) {
        let visit = &mut |combination: &Combination<'_>| {
            visit(combination);
            ControlFlow::Continue(())
        };
        let _ = self.visit(parts, sized, visit);
    }

    /// The same, until `visit` breaks.
    pub(crate) fn visit(
        &self,
        parts: &[Part],
        sized: impl Fn(usize) -> bool,
        visit: &mut dyn FnMut(&Combination<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let spreads: Vec<Vec<Spread>> = parts.iter().map(|part| self.spreads(part, &sized)).collect();
        let mut walk = Walk {
            space: self,
            parts: parts.iter().zip(&spreads).collect(),
            of_parts: Vec::new(),
            of_classes: vec![0; self.limits.classes()],
            visit,
        };
        walk.from(&Spread::unit())
    }

    /// All multisets of the actions of a part, by how many they are and by their bytes.
    fn spreads(&self, part: &Part, sized: impl Fn(usize) -> bool) -> Vec<Spread> {
        let most = self.limits.max_of_class(part.class).min(self.limits.max_actions()) as usize;
        let mut spreads = vec![Spread::unit()];
        spreads.resize(most + 1, Spread::NONE);
        for action in &part.actions {
            let (Some(factors), Some(bytes)) = (self.weights.of_action.get(*action), self.bytes.get(*action)) else {
                continue;
            };
            let bytes = if sized(*action) { *bytes } else { 0 };
            let mut next = vec![Spread::NONE; most + 1];
            for (before, spread) in spreads.iter().enumerate() {
                for (count, (next, factor)) in next.iter_mut().skip(before).zip(factors).enumerate() {
                    next.add_scaled(spread, bytes * count, *factor);
                }
            }
            spreads = next;
        }
        spreads
    }
}

/// Checks that sums over commands of up to `most` actions have room for every size. Of actions whose sizes vary, no bytes
/// are counted in places.
fn check_width(bytes: &[usize], most: u32) -> Result<(), LeakageError> {
    let (least, greatest) = (bytes.iter().min().copied().unwrap_or(0), bytes.iter().max().copied().unwrap_or(0));
    let width = |apart: usize| apart.saturating_mul((most as usize).saturating_pow(2));
    // Sizes are added up as far as all actions of a command are of the greatest.
    let is_countable = greatest.saturating_mul(most as usize) <= MAX_BYTES;
    if width(greatest - least) > MAX_WIDTH || !is_countable {
        return Err(LeakageError::TooWide(greatest - least, most));
    }
    Ok(())
}

/// A walk over the combinations of parts.
struct Walk<'a> {
    space: &'a CommandSpace,
    parts: Vec<(&'a Part, &'a Vec<Spread>)>,
    of_parts: Vec<u32>,
    of_classes: Vec<u32>,
    visit: &'a mut dyn FnMut(&Combination<'_>) -> ControlFlow<()>,
}

impl Walk<'_> {
    /// Adds the parts that follow to `spread`, which the parts so far make.
    fn from(&mut self, spread: &Spread) -> ControlFlow<()> {
        let Some((part, spreads)) = self.parts.get(self.of_parts.len()).copied() else {
            if let Some(factor) = self.space.weights.of_totals.get(&self.of_classes).copied() {
                let (of_parts, of_classes) = (&self.of_parts, &self.of_classes);
                return (self.visit)(&Combination { of_parts, of_classes, spread, factor });
            }
            return ControlFlow::Continue(());
        };
        let before = self.of_classes.get(part.class).copied().unwrap_or(0);
        for (count, of_part) in (0..).zip(spreads) {
            if let Some(total) = self.of_classes.get_mut(part.class) {
                *total = before + count;
            }
            if !self.space.limits.admits_totals(&self.of_classes) {
                break;
            }
            self.of_parts.push(count);
            self.from(&spread.products(of_part))?;
            self.of_parts.pop();
        }
        if let Some(total) = self.of_classes.get_mut(part.class) {
            *total = before;
        }
        ControlFlow::Continue(())
    }
}
