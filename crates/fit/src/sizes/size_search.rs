//! Changing the sizes of actions step by step to fit the commands better.

/// Pairs of sizes are changed together for at most this many actions.
const MAX_PAIRED_ACTIONS: usize = 24;

const MAX_ROUNDS: usize = 50;

/// The cost of what sizes of actions leave unexplained, if it is below a limit.
type CostOf<'a> = dyn Fn(&[i64], f64) -> Option<f64> + 'a;

/// Sizes of actions, the cost of what they leave unexplained, and the changes to try.
pub(crate) struct SizeSearch<'a> {
    pub(crate) sizes: Vec<i64>,
    pub(crate) cost: f64,
    cost_of: Box<CostOf<'a>>,
    /// Each change is a list of action indices and the bytes to add.
    changes: Vec<Vec<(usize, i64)>>,
}

impl<'a> SizeSearch<'a> {
    pub(crate) fn new(sizes: Vec<i64>, cost_of: impl Fn(&[i64], f64) -> Option<f64> + 'a) -> Self {
        let cost = cost_of(&sizes, f64::INFINITY).unwrap_or(f64::INFINITY);
        Self { changes: changes(sizes.len()), cost, sizes, cost_of: Box::new(cost_of) }
    }

    pub(crate) fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Tries a change and keeps it if what it costs is below a limit.
    pub(crate) fn try_change(&mut self, index: usize, limit: f64) {
        let Some(change) = self.changes.get(index) else { return };
        add(&mut self.sizes, change, 1);
        match (self.cost_of)(&self.sizes, limit) {
            Some(cost) => self.cost = cost,
            None => add(&mut self.sizes, change, -1),
        }
    }

    /// Applies changes as long as one of them lowers the cost.
    pub(crate) fn descend(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let before = self.cost;
            for index in 0..self.changes.len() {
                self.try_change(index, self.cost);
            }
            if self.cost >= before {
                break;
            }
        }
    }
}

/// Changes of one size or of all sizes by up to 3 bytes; if there are few actions, also of two by one byte each.
fn changes(actions: usize) -> Vec<Vec<(usize, i64)>> {
    let by = [1, -1, 2, -2, 3, -3];
    let mut changes: Vec<Vec<(usize, i64)>> = by.map(|by| (0..actions).map(|at| (at, by)).collect()).into();
    changes.extend((0..actions).flat_map(|at| by.map(|by| vec![(at, by)])));
    if actions <= MAX_PAIRED_ACTIONS {
        for first in 0..actions {
            for second in first + 1..actions {
                changes.extend([(1, 1), (1, -1), (-1, 1), (-1, -1)].map(|(a, b)| vec![(first, a), (second, b)]));
            }
        }
    }
    changes
}

fn add(sizes: &mut [i64], change: &[(usize, i64)], sign: i64) {
    for (at, by) in change {
        if let Some(size) = sizes.get_mut(*at) {
            *size = size.saturating_add(sign * by);
        }
    }
}
