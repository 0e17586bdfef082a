//! How often each action occurs among all commands with so many actions: totals, means and covariances.

use sizeleak_model::{Pmf, Weight};

use crate::inference::ReplyInference;
use crate::symmetric::Symmetric;

/// Commands by their number of actions, from 1, as far as they were asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct NumberMoments {
    /// The weights of all multisets together.
    pub(crate) totals: Vec<f64>,
    /// E[nbₐ], by action.
    pub(crate) means: Vec<Vec<f64>>,
    /// The covariances of the numbers of two actions.
    pub(crate) covariances: Vec<Symmetric>,
}

/// The weights of each number of times that an action occurs.
type Row = Vec<f64>;

/// What each action weighs when it occurs 0, 1, 2… times, by the class of the inventory.
#[derive(Debug, Clone)]
pub(crate) struct ActionRows {
    /// By the action's index in the model.
    rows: Vec<(usize, Row)>,
    /// The most actions of each class.
    most: Vec<usize>,
}

impl ReplyInference {
    /// The weights by the prior, without habits.
    pub(crate) fn action_rows(&self) -> ActionRows {
        let mut rows = vec![(0, Vec::new()); self.actions()];
        for group in &self.groups.list {
            for (action, occurrences) in group.actions.iter().zip(&group.occurrences) {
                rows[action.index] = (group.class, occurrences.iter().map(Pmf::total).collect());
            }
        }
        ActionRows { rows, most: self.of_class.iter().map(|sums| sums.len().max(1) - 1).collect() }
    }

    /// The weights of all multisets of each number of actions, from 1, if the weight of each is multiplied by the factors
    /// of its actions, in the order of the model. `None` where devices can be used up in too many ways.
    pub(crate) fn number_totals(&self, rows: &ActionRows, factors: &[f64]) -> Option<Vec<f64>> {
        let mut of_class: Vec<Row> = rows.most.iter().map(|most| one_at_first(1.0, *most)).collect();
        for (class, row) in rows.with(factors) {
            let all = &mut of_class[class];
            // From the greatest number down: what is read is not yet changed.
            for number in (0..all.len()).rev() {
                all[number] = all[..=number].iter().zip(row[..=number].iter().rev()).map(|(all, own)| all * own).sum();
            }
        }
        let mut totals = self.groups.devices.number_totals(&of_class)?;
        totals.remove(0);
        Some(totals)
    }

    /// The same with means and covariances, of at most so many actions.
    pub(crate) fn number_moments(&self, rows: &ActionRows, factors: &[f64], most: usize) -> Option<NumberMoments> {
        let actions = rows.rows.len();
        let none = |of_class: &usize| one_at_first(Moments::one(actions), most.min(*of_class));
        let mut of_class: Vec<Vec<Moments>> = rows.most.iter().map(none).collect();
        for (action, (class, row)) in rows.with(factors).enumerate() {
            let all = &mut of_class[class];
            for number in (0..all.len()).rev() {
                // Those that do not have the action are as they were.
                let (before, with) = all.split_at_mut(number);
                for (before, (times, weight)) in before.iter().rev().zip(row.iter().enumerate().skip(1)) {
                    with[0].add_with_action(before, action, times as f64, *weight);
                }
            }
        }
        let of_numbers = self.groups.devices.number_totals(&of_class)?;
        let mut found = NumberMoments { totals: Vec::new(), means: Vec::new(), covariances: Vec::new() };
        for own in of_numbers.into_iter().take(most.saturating_add(1)).skip(1) {
            let share =
                |one: usize, other: usize| if own.is_none() { 0.0 } else { own.0[place(one, other)] / own.0[0] };
            let means: Vec<f64> = (0..actions).map(|action| share(action + 1, 0)).collect();
            let mut covariance = Symmetric::zero(actions);
            for (one, other) in (0..actions).flat_map(|one| (0..=one).map(move |other| (one, other))) {
                let own = share(one + 1, other + 1) - means[one] * means[other];
                covariance.values[one * actions + other] = own;
                covariance.values[other * actions + one] = own;
            }
            found.totals.push(own.0.first().copied().unwrap_or(0.0));
            found.means.push(means);
            found.covariances.push(covariance);
        }
        Some(found)
    }
}

impl ActionRows {
    /// With a factor for each occurrence of an action, by action, each with its class.
    fn with(&self, factors: &[f64]) -> impl Iterator<Item = (usize, Row)> {
        self.rows.iter().zip(factors).map(|((class, row), factor)| {
            let mut power = 1.0;
            let weigh = |weight: &f64| {
                let own = weight * power;
                power *= factor;
                own
            };
            (*class, row.iter().map(weigh).collect())
        })
    }
}

/// Something for no action, and nothing for 1, 2… `most`.
fn one_at_first<W: Weight>(one: W, most: usize) -> Vec<W> {
    let mut all = vec![W::NONE; most + 1];
    all[0] = one;
    all
}

/// The weight of some commands, with the sums over them of the numbers of each action, and of the products of two of these:
/// of the products of two of 1 and these numbers, by [`place`]. Empty of no commands.
#[derive(Debug, Clone)]
struct Moments(Vec<f64>);

/// Where the product of two numbers is: 1 is the first one, and that of each action follows. The second is no later one.
fn place(one: usize, other: usize) -> usize {
    one * (one + 1) / 2 + other
}

impl Moments {
    /// A command without an action.
    fn one(actions: usize) -> Self {
        let mut sums = vec![0.0; place(actions + 1, 0)];
        sums[0] = 1.0;
        Self(sums)
    }

    /// Adds commands before, with an action that they do not have so many times, with a weight. They have no later one.
    fn add_with_action(&mut self, before: &Self, action: usize, times: f64, weight: f64) {
        if before.is_none() {
            return;
        }
        self.0.resize(before.0.len(), 0.0);
        let (row, weighed) = (place(action + 1, 0), weight * times);
        self.0[..row].iter_mut().zip(&before.0).for_each(|(all, own)| *all += weight * own);
        for other in 0..=action {
            self.0[row + other] += weighed * before.0[place(other, 0)];
        }
        self.0[row + action + 1] += weighed * times * before.0[0];
    }
}

impl Weight for Moments {
    const NONE: Self = Self(Vec::new());

    fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.0.resize(self.0.len().max(other.0.len()), 0.0);
        self.0.iter_mut().zip(&other.0).for_each(|(all, own)| *all += factor * own);
    }

    fn add_product(&mut self, one: &Self, other: &Self) {
        if one.is_none() || other.is_none() {
            return;
        }
        let weight = self.0.first().copied().unwrap_or(0.0) + one.0[0] * other.0[0];
        self.add_scaled(one, other.0[0]);
        self.add_scaled(other, one.0[0]);
        self.0[0] = weight;
        for row in 1.. {
            let of_row = place(row, 0);
            let Some(own) = self.0.get_mut(of_row + 1..=of_row + row) else { return };
            let (first, second) = (one.0[of_row], other.0[of_row]);
            for (all, column) in own.iter_mut().zip(1..) {
                let of_column = place(column, 0);
                *all += first * other.0[of_column] + second * one.0[of_column];
            }
        }
    }

    fn is_none(&self) -> bool {
        self.0.first().is_none_or(|weight| *weight <= 0.0)
    }
}
