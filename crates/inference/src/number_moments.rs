//! How often each action occurs among all commands with so many actions: totals, means and covariances.

use sizeleak_model::{Pmf, Weight};

use crate::inference::ReplyInference;
use crate::symmetric::Symmetric;

/// Commands by their number of actions, from 1.
#[derive(Debug, Clone)]
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

    /// The same with means and covariances.
    pub(crate) fn number_moments(&self, rows: &ActionRows, factors: &[f64]) -> Option<NumberMoments> {
        let actions = rows.rows.len();
        let mut of_class: Vec<Vec<Moments>> =
            rows.most.iter().map(|most| one_at_first(Moments::one(actions), *most)).collect();
        for (action, (class, row)) in rows.with(factors).enumerate() {
            let all = &mut of_class[class];
            for number in (0..all.len()).rev() {
                let mut with = Moments::NONE;
                for (before, (times, weight)) in all[..=number].iter().rev().zip(row.iter().enumerate()) {
                    with.add_with_action(before, action, times as f64, *weight);
                }
                all[number] = with;
            }
        }
        let of_numbers = self.groups.devices.number_totals(&of_class)?;
        let mut found = NumberMoments { totals: Vec::new(), means: Vec::new(), covariances: Vec::new() };
        for Moments { weight, means, products } in of_numbers.into_iter().skip(1) {
            let share = |own: Option<&f64>| own.filter(|_| weight > 0.0).map_or(0.0, |own| own / weight);
            let means: Vec<f64> = (0..actions).map(|action| share(means.get(action))).collect();
            let mut covariance = Symmetric::zero(actions);
            for (one, other) in (0..actions).flat_map(|one| (0..=one).map(move |other| (one, other))) {
                let own = share(products.get(place(one, other))) - means[one] * means[other];
                covariance.values[one * actions + other] = own;
                covariance.values[other * actions + one] = own;
            }
            found.totals.push(weight);
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

/// The weight of some commands, with the sums over them of the numbers of each action, and of the products of two of these.
#[derive(Debug, Clone)]
struct Moments {
    weight: f64,
    means: Vec<f64>,
    /// By [`place`].
    products: Vec<f64>,
}

/// Where the product of the numbers of two actions is; the second is no later one.
fn place(one: usize, other: usize) -> usize {
    one * (one + 1) / 2 + other
}

impl Moments {
    /// A command without an action.
    fn one(actions: usize) -> Self {
        Self { weight: 1.0, means: vec![0.0; actions], products: vec![0.0; place(actions, 0)] }
    }

    fn add_sums(&mut self, other: &Self, factor: f64) {
        self.means.resize(self.means.len().max(other.means.len()), 0.0);
        self.products.resize(self.products.len().max(other.products.len()), 0.0);
        self.means.iter_mut().zip(&other.means).for_each(|(all, own)| *all += factor * own);
        self.products.iter_mut().zip(&other.products).for_each(|(all, own)| *all += factor * own);
    }

    /// Adds commands before, with an action that they do not have so many times, with a weight.
    fn add_with_action(&mut self, before: &Self, action: usize, times: f64, weight: f64) {
        if before.is_none() {
            return;
        }
        self.add_scaled(before, weight);
        let weight = weight * times;
        self.means[action] += weight * before.weight;
        for (other, mean) in before.means.iter().enumerate() {
            self.products[place(action.max(other), action.min(other))] += weight * mean;
        }
        self.products[place(action, action)] += weight * times * before.weight;
    }
}

impl Weight for Moments {
    const NONE: Self = Self { weight: 0.0, means: Vec::new(), products: Vec::new() };

    fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.weight += factor * other.weight;
        self.add_sums(other, factor);
    }

    fn add_product(&mut self, one: &Self, other: &Self) {
        self.weight += one.weight * other.weight;
        self.add_sums(one, other.weight);
        self.add_sums(other, one.weight);
        for (row, (first, second)) in one.means.iter().zip(&other.means).enumerate() {
            let columns = one.means.iter().zip(&other.means).take(row + 1);
            for (all, (one, other)) in self.products[place(row, 0)..].iter_mut().zip(columns) {
                *all += first * other + second * one;
            }
        }
    }

    fn is_none(&self) -> bool {
        self.weight <= 0.0
    }
}
