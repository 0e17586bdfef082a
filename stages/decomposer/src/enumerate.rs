//! The ways to make up a sum, one after another: nothing is stored but the way being walked, and no step is taken that
//! leads to none.

use crate::Solver;
use crate::inventory::Step;

/// Enumerates the multisets of actions that make up a sum.
#[derive(Debug, Clone)]
pub struct Solutions<'a> {
    solver: &'a Solver,
    progress: Progress,
    /// Where the walk is in each layer but the last, where what is left of the sum says how often its action is taken.
    path: Vec<Place>,
    /// How often each action is taken, in the model's order.
    counts: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
enum Progress {
    /// Nothing is walked yet; this is the sum to make up, where one can be.
    Before(Option<usize>),
    Within,
    After,
}

/// A layer's state after the action was taken some times, and what is left of the sum then.
#[derive(Debug, Clone, Copy)]
struct Place {
    state: u32,
    sum: usize,
    taken: u32,
}

impl<'a> Solutions<'a> {
    pub(crate) fn new(solver: &'a Solver, sum: Option<usize>) -> Self {
        Self { solver, progress: Progress::Before(sum), path: Vec::new(), counts: vec![0; solver.actions()] }
    }

    /// The next multiset: how often each action occurs, in the model's order. Does without the copy that the iterator
    /// makes.
    pub fn advance(&mut self) -> Option<&[u32]> {
        let found = match self.progress {
            Progress::Before(Some(sum)) if self.solver.ways(0, 0, sum) > 0 => {
                self.descend(0, sum);
                true
            }
            Progress::Within => self.turn(),
            _ => false,
        };
        self.progress = if found { Progress::Within } else { Progress::After };
        found.then_some(&self.counts)
    }

    /// Walks on to the first solution below a state that leads to one: takes each action as often as leads to one.
    fn descend(&mut self, mut state: u32, mut sum: usize) {
        while let Some(layer) = self.solver.layer(self.path.len()) {
            let at = self.path.len();
            if at + 1 == self.solver.actions() {
                self.set(layer.action, u32::try_from(sum / layer.size).unwrap_or(u32::MAX));
                return;
            }
            let mut taken = 0;
            while let Some((next, rest)) = take(layer.steps.get(state as usize), sum, layer.size)
                && self.solver.ways(at, next, rest) > 0
            {
                (state, sum, taken) = (next, rest, taken + 1);
            }
            self.path.push(Place { state, sum, taken });
            self.set(layer.action, taken);
            state = layer.steps.get(state as usize).map_or(0, |step| step.pass);
        }
    }

    /// Goes back to the last action of which fewer can be taken, and on from there.
    fn turn(&mut self) -> bool {
        while let Some(mut place) = self.path.pop() {
            let at = self.path.len();
            let Some(layer) = self.solver.layer(at) else { return false };
            while place.taken > 0 {
                let Some(state) = layer.steps.get(place.state as usize).and_then(|step| step.untake) else { break };
                place = Place { state, sum: place.sum + layer.size, taken: place.taken - 1 };
                let Some(pass) = layer.steps.get(state as usize).map(|step| step.pass) else { break };
                if self.solver.ways(at + 1, pass, place.sum) > 0 {
                    self.path.push(place);
                    self.set(layer.action, place.taken);
                    self.descend(pass, place.sum);
                    return true;
                }
            }
        }
        false
    }

    fn set(&mut self, action: usize, count: u32) {
        if let Some(slot) = self.counts.get_mut(action) {
            *slot = count;
        }
    }
}

impl Iterator for Solutions<'_> {
    type Item = Vec<u32>;

    fn next(&mut self) -> Option<Vec<u32>> {
        self.advance().map(<[u32]>::to_vec)
    }
}

/// The state and the rest of the sum after one more of an action of this size.
fn take(step: Option<&Step>, sum: usize, size: usize) -> Option<(u32, usize)> {
    Some((step?.take?, sum.checked_sub(size)?))
}
