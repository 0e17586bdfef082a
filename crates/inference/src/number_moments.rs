//! How often each action occurs among all commands with so many actions: totals, means and covariances.

use sizeleak_model::Pmf;

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
        let rows = rows.with(factors);
        let of_class: Vec<Row> = (0..rows.most.len()).map(|class| rows.product(class, &[])).collect();
        self.totals(&of_class)
    }

    /// The same with means and covariances.
    pub(crate) fn number_moments(&self, rows: &ActionRows, factors: &[f64]) -> Option<NumberMoments> {
        let rows = rows.with(factors);
        let actions = rows.rows.len();
        let plain: Vec<Row> = (0..rows.most.len()).map(|class| rows.product(class, &[])).collect();
        let totals = self.totals(&plain)?;
        // Of products of the numbers of some actions, by how many actions there are in all.
        let expected = |some: &[usize]| -> Option<Vec<f64>> {
            let mut of_class = plain.clone();
            for action in some {
                let class = rows.rows[*action].0;
                of_class[class] = rows.product(class, some);
            }
            let weighed = self.totals(&of_class)?;
            Some(weighed.iter().zip(&totals).map(|(own, all)| if *all > 0.0 { own / all } else { 0.0 }).collect())
        };
        let mut means = vec![vec![0.0; actions]; totals.len()];
        let mut covariances = vec![Symmetric::zero(actions); totals.len()];
        for action in 0..actions {
            for (mean, own) in means.iter_mut().zip(expected(&[action])?) {
                mean[action] = own;
            }
        }
        for one in 0..actions {
            for other in 0..=one {
                for ((matrix, both), mean) in covariances.iter_mut().zip(expected(&[one, other])?).zip(&means) {
                    let own = both - mean[one] * mean[other];
                    matrix.values[one * actions + other] = own;
                    matrix.values[other * actions + one] = own;
                }
            }
        }
        Some(NumberMoments { totals, means, covariances })
    }

    fn totals(&self, of_class: &[Row]) -> Option<Vec<f64>> {
        let mut totals = self.groups.devices.number_totals(of_class)?;
        totals.remove(0);
        Some(totals)
    }
}

impl ActionRows {
    /// With a factor for each occurrence of an action.
    fn with(&self, factors: &[f64]) -> Self {
        let with = |((class, row), factor): (&(usize, Row), &f64)| {
            let own = row.iter().zip(0..).map(|(weight, times)| weight * factor.powi(times));
            (*class, own.collect())
        };
        Self { rows: self.rows.iter().zip(factors).map(with).collect(), most: self.most.clone() }
    }

    /// The weights of k actions of a class, by k, times the numbers of some of the actions.
    fn product(&self, class: usize, some: &[usize]) -> Row {
        let mut all = vec![0.0; self.most[class] + 1];
        all[0] = 1.0;
        let mut is_first = true;
        for (action, (_, row)) in self.rows.iter().enumerate().filter(|(_, (own, _))| *own == class) {
            let weight = |nth: usize| {
                let times = some.iter().filter(|one| **one == action).count();
                row[nth] * (0..times).map(|_| nth as f64).product::<f64>()
            };
            let own: Row = (0..all.len()).map(weight).collect();
            if std::mem::take(&mut is_first) {
                all = own;
                continue;
            }
            // From the greatest number down: what is read is not yet changed.
            for number in (0..all.len()).rev() {
                all[number] = all[..=number].iter().zip(own[..=number].iter().rev()).map(|(all, own)| all * own).sum();
            }
        }
        all
    }
}
