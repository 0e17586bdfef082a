//! Which action is mistaken for which.
//!
//! A candidate says how often each action occurs, not which occurrence is which. Occurrences that truth and answer
//! share are right; each remaining true occurrence may have been mistaken for any remaining one of the answer, with
//! every pairing equally likely. The figures are the expected numbers of pairs.

use serde::Serialize;

use crate::judge::JudgedLabel;

/// The expected misattributions, in the order of the actions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confusion {
    /// For each true action, how often it was taken for each action: right on the diagonal.
    pub taken: Vec<Vec<f64>>,
    /// For each true action, how often it was taken for nothing.
    pub missed: Vec<f64>,
    /// For each action, how often it was answered although it did not occur.
    pub invented: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Misattribution {
    /// The index of the true action; `None` if there was none.
    pub truth: Option<usize>,
    /// The index of the action it was taken for; `None` if it was taken for nothing.
    pub answer: Option<usize>,
    /// The expected number of times.
    pub times: f64,
}

impl Confusion {
    /// The confusion over all labelled commands; a command without an answer misses all its actions.
    pub(crate) fn new(actions: usize, labels: &[JudgedLabel<'_>]) -> Self {
        let mut confusion =
            Self { taken: vec![vec![0.0; actions]; actions], missed: vec![0.0; actions], invented: vec![0.0; actions] };
        for label in labels {
            let answer = label.judgement.and_then(|judgement| judgement.first.as_deref()).unwrap_or_default();
            confusion.add(label.truth, answer);
        }
        confusion
    }

    fn add(&mut self, truth: &[u32], answer: &[u32]) {
        let count = |counts: &[u32], at: usize| counts.get(at).copied().unwrap_or(0);
        let actions = self.missed.len();
        let shared: Vec<u32> = (0..actions).map(|at| count(truth, at).min(count(answer, at))).collect();
        let rest = |counts: &[u32]| -> Vec<f64> {
            shared.iter().enumerate().map(|(at, shared)| f64::from(count(counts, at) - shared)).collect()
        };
        let (left, extra) = (rest(truth), rest(answer));
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

    /// The most frequent misattributions, at most `limit`, without those below half an occurrence.
    pub fn most_frequent(&self, limit: usize) -> Vec<Misattribution> {
        let pairs = self.taken.iter().enumerate().flat_map(|(truth, row)| {
            let others = row.iter().enumerate().filter(move |(answer, _)| *answer != truth);
            others.map(move |(answer, times)| (Some(truth), Some(answer), *times))
        });
        let missed = self.missed.iter().enumerate().map(|(truth, times)| (Some(truth), None, *times));
        let invented = self.invented.iter().enumerate().map(|(answer, times)| (None, Some(answer), *times));
        let all = pairs.chain(missed).chain(invented).filter(|(.., times)| *times >= 0.5);
        let mut all: Vec<Misattribution> =
            all.map(|(truth, answer, times)| Misattribution { truth, answer, times }).collect();
        all.sort_by(|one, other| other.times.total_cmp(&one.times));
        all.truncate(limit);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confusion(pairs: &[([u32; 3], [u32; 3])]) -> Confusion {
        let mut confusion = Confusion::new(3, &[]);
        for (truth, answer) in pairs {
            confusion.add(truth, answer);
        }
        confusion
    }

    #[test]
    fn remaining_occurrences_are_paired_in_every_way() {
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
    fn every_occurrence_is_counted_once() {
        let pairs = [([5, 1, 0], [0, 2, 2]), ([0, 4, 4], [3, 3, 9]), ([1, 1, 1], [1, 1, 1]), ([2, 0, 0], [0, 0, 0])];
        let all = confusion(&pairs);
        for at in 0..3 {
            let truths: u32 = pairs.iter().map(|(truth, _)| truth[at]).sum();
            let answers: u32 = pairs.iter().map(|(_, answer)| answer[at]).sum();
            let column: f64 = all.taken.iter().map(|row| row[at]).sum();
            assert!((all.taken[at].iter().sum::<f64>() + all.missed[at] - f64::from(truths)).abs() < 1e-12);
            assert!((column + all.invented[at] - f64::from(answers)).abs() < 1e-12);
        }
    }

    #[test]
    fn most_frequent_misattributions_come_first() {
        let all = confusion(&[([2, 0, 0], [0, 2, 0]), ([0, 0, 1], [0, 0, 0]), ([0, 0, 0], [1, 0, 0])]);
        let [swapped, missed] = [(Some(0), Some(1), 2.0), (Some(2), None, 1.0)]
            .map(|(truth, answer, times)| Misattribution { truth, answer, times });
        assert_eq!(all.most_frequent(2), [swapped, missed]);
        assert_eq!(all.most_frequent(9).len(), 3);
    }
}
