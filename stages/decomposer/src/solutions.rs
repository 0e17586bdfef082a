//! The ways to make up a sum, one after another: nothing is stored but the way being walked, and no step leads to a
//! dead end.

use crate::Solver;

/// Enumerates multisets of actions that make up a sum.
#[derive(Debug, Clone)]
pub struct Solutions<'a> {
    solver: &'a Solver,
    /// The states passed: at each action, before one of it is taken or it is left.
    path: Vec<Step>,
    counts: Vec<u32>,
    ended: bool,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    action: usize,
    total: usize,
    sum: usize,
    /// Whether one of the action was taken here; else it was left.
    took: bool,
}

impl<'a> Solutions<'a> {
    pub(crate) fn new(solver: &'a Solver, sum: Option<usize>) -> Self {
        let mut solutions = Self { solver, path: Vec::new(), counts: vec![0; solver.actions()], ended: true };
        if let Some(sum) = sum
            && solver.ways_from(0, 0, sum) > 0
        {
            solutions.ended = false;
            solutions.descend(0, 0, sum);
        }
        solutions
    }

    /// Walks from a state that leads to a solution to the first one: takes an action wherever that leads to one.
    fn descend(&mut self, mut action: usize, mut total: usize, mut sum: usize) {
        while action < self.solver.actions() {
            let taken = self.after_one_more(action, total, sum);
            self.path.push(Step { action, total, sum, took: taken.is_some() });
            match taken {
                Some((next_total, next_sum)) => {
                    self.change(action, 1);
                    (total, sum) = (next_total, next_sum);
                }
                None => action += 1,
            }
        }
    }

    /// The state after taking one of an action, where that leads to a solution.
    fn after_one_more(&self, action: usize, total: usize, sum: usize) -> Option<(usize, usize)> {
        let sum = sum.checked_sub(self.solver.size(action)?)?;
        let total = self.solver.taken(action, total)?;
        (self.solver.ways_from(action, total, sum) > 0).then_some((total, sum))
    }

    /// Goes back to the last action taken that can be left instead, and on from there.
    fn advance(&mut self) {
        while let Some(step) = self.path.pop() {
            if !step.took {
                continue;
            }
            self.change(step.action, -1);
            if self.solver.ways_from(step.action + 1, step.total, step.sum) > 0 {
                self.path.push(Step { took: false, ..step });
                self.descend(step.action + 1, step.total, step.sum);
                return;
            }
        }
        self.ended = true;
    }

    fn change(&mut self, action: usize, by: i32) {
        if let Some(count) = self.counts.get_mut(action) {
            *count = count.saturating_add_signed(by);
        }
    }
}

impl Iterator for Solutions<'_> {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        if self.ended {
            return None;
        }
        let solution = self.counts.clone();
        self.advance();
        Some(solution)
    }
}
