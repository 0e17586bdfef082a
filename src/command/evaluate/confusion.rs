//! Which action is taken for which.
//!
//! A first answer tells how often each action occurs, not which occurrence is which. What truth and answer have in common
//! is right; of the rest, each true occurrence may have been taken for any of the answer's, all pairings being alike. The
//! figures are the expected numbers of pairs.

use serde::Serialize;

use super::score::Judged;

/// Expected misattributions, in the order of the actions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::command) struct Confusion {
    /// For each true action, how often it was taken for each action: right on the diagonal.
    pub(in crate::command) taken: Vec<Vec<f64>>,
    /// For each true action, how often it was taken for nothing.
    pub(in crate::command) missed: Vec<f64>,
    /// For each action, how often it was answered where there was nothing.
    pub(in crate::command) invented: Vec<f64>,
}

impl Confusion {
    /// Over all labelled commands; one without an answer misses all its actions.
    pub(in crate::command) fn of(actions: usize, all: &[Judged<'_>]) -> Self {
        let mut confusion =
            Self { taken: vec![vec![0.0; actions]; actions], missed: vec![0.0; actions], invented: vec![0.0; actions] };
        for judged in all {
            let said = judged.judgement.and_then(|judgement| judgement.first.as_deref()).unwrap_or_default();
            confusion.add(judged.truth, said);
        }
        confusion
    }

    fn add(&mut self, truth: &[u32], said: &[u32]) {
        let count = |counts: &[u32], at: usize| counts.get(at).copied().unwrap_or(0);
        let actions = self.missed.len();
        let shared: Vec<u32> = (0..actions).map(|at| count(truth, at).min(count(said, at))).collect();
        let rest = |counts: &[u32]| -> Vec<f64> {
            shared.iter().enumerate().map(|(at, shared)| f64::from(count(counts, at) - shared)).collect()
        };
        let (left, extra) = (rest(truth), rest(said));
        let [lefts, extras]: [f64; 2] = [&left, &extra].map(|rest| rest.iter().sum());
        let most = lefts.max(extras).max(1.0);
        let rows = self.taken.iter_mut().zip(&shared).zip(&left).enumerate();
        for (at, ((row, shared), left)) in rows {
            for (cell, extra) in row.iter_mut().zip(&extra) {
                *cell += left * extra / most;
            }
            if let Some(right) = row.get_mut(at) {
                *right += f64::from(*shared);
            }
        }
        for (missed, left) in self.missed.iter_mut().zip(&left) {
            *missed += left * (1.0 - extras / most);
        }
        for (invented, extra) in self.invented.iter_mut().zip(&extra) {
            *invented += extra * (1.0 - lefts / most);
        }
    }

    /// The greatest misattributions, at most `most`: the true action, what it was taken for (`None` for nothing), and how
    /// often. Those below half an occurrence are left out.
    pub(in crate::command) fn greatest(&self, most: usize) -> Vec<(Option<usize>, Option<usize>, f64)> {
        let pairs = self.taken.iter().enumerate().flat_map(|(truth, row)| {
            let others = row.iter().enumerate().filter(move |(said, _)| *said != truth);
            others.map(move |(said, times)| (Some(truth), Some(said), *times))
        });
        let missed = self.missed.iter().enumerate().map(|(truth, times)| (Some(truth), None, *times));
        let invented = self.invented.iter().enumerate().map(|(said, times)| (None, Some(said), *times));
        let mut all: Vec<_> = pairs.chain(missed).chain(invented).filter(|(.., times)| *times >= 0.5).collect();
        all.sort_by(|one, other| other.2.total_cmp(&one.2));
        all.truncate(most);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confusion(pairs: &[([u32; 3], [u32; 3])]) -> Confusion {
        let mut confusion = Confusion::of(3, &[]);
        for (truth, said) in pairs {
            confusion.add(truth, said);
        }
        confusion
    }

    #[test]
    fn what_is_left_is_paired_in_every_way() {
        let one = confusion(&[([2, 0, 1], [1, 1, 1])]);
        assert_eq!(one.taken, [vec![1.0, 1.0, 0.0], vec![0.0; 3], vec![0.0, 0.0, 1.0]]);
        assert_eq!((one.missed, one.invented), (vec![0.0; 3], vec![0.0; 3]));
        // Two for one: each is half taken for it, half missed.
        let fewer = confusion(&[([1, 1, 0], [0, 0, 1])]);
        assert_eq!(fewer.taken, [vec![0.0, 0.0, 0.5], vec![0.0, 0.0, 0.5], vec![0.0; 3]]);
        assert_eq!(fewer.missed, [0.5, 0.5, 0.0]);
        let more = confusion(&[([0, 0, 1], [1, 1, 0])]);
        assert_eq!((more.taken[2].clone(), more.invented), (vec![0.5, 0.5, 0.0], vec![0.5, 0.5, 0.0]));
    }

    #[test]
    fn every_occurrence_is_somewhere() {
        let pairs = [([5, 1, 0], [0, 2, 2]), ([0, 4, 4], [3, 3, 9]), ([1, 1, 1], [1, 1, 1]), ([2, 0, 0], [0, 0, 0])];
        let all = confusion(&pairs);
        for at in 0..3 {
            let truly: u32 = pairs.iter().map(|(truth, _)| truth[at]).sum();
            let said: u32 = pairs.iter().map(|(_, said)| said[at]).sum();
            let column: f64 = all.taken.iter().map(|row| row[at]).sum();
            assert!((all.taken[at].iter().sum::<f64>() + all.missed[at] - f64::from(truly)).abs() < 1e-12);
            assert!((column + all.invented[at] - f64::from(said)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_greatest_come_first() {
        let all = confusion(&[([2, 0, 0], [0, 2, 0]), ([0, 0, 1], [0, 0, 0]), ([0, 0, 0], [1, 0, 0])]);
        assert_eq!(all.greatest(2), [(Some(0), Some(1), 2.0), (Some(2), None, 1.0)]);
        assert_eq!(all.greatest(9).len(), 3);
    }
}
