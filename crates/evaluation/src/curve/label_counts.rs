//! How many labels models of a learning curve are learned from, and which: samples drawn at random.

use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// The factor from one number of labels to the next, if the user names none.
const GROWTH: f64 = 2.0;

/// A number of labels that is not smaller than all of them by this factor shows nothing new, if the user names none.
const MIN_GROWTH: f64 = 1.4;

/// How many samples of the same number of labels are drawn.
const DRAWS: u64 = 5;

/// The numbers of labels to learn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelCounts {
    /// From the number of actions to all labels, growing by a constant factor.
    Growing,
    /// These, in ascending order.
    Named(Vec<usize>),
}

impl FromStr for LabelCounts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Growing);
        }
        let count = |part: &str| part.trim().parse().ok().filter(|count| *count > 0);
        let counts: Option<Vec<usize>> = text.split(',').map(count).collect();
        let mut counts = counts.ok_or("write numbers of labels separated by commas, such as 20,60,100")?;
        counts.sort_unstable();
        counts.dedup();
        Ok(Self::Named(counts))
    }
}

impl LabelCounts {
    /// The counts below `labels`, and `labels` itself.
    pub(crate) fn up_to(&self, actions: usize, labels: usize) -> Vec<usize> {
        let mut counts: Vec<usize> = match self {
            Self::Named(counts) => counts.iter().copied().filter(|count| *count < labels).collect(),
            Self::Growing => {
                let next = |count: &usize| Some((*count as f64 * GROWTH).ceil() as usize);
                let is_fewer = |count: &usize| *count as f64 * MIN_GROWTH < labels as f64;
                std::iter::successors(Some(actions.max(2)), next).take_while(is_fewer).collect()
            }
        };
        counts.push(labels);
        counts
    }
}

/// Samples of `count` of these rows, without repetition and in the order of the rows: several, or the only one if it is
/// all of them. The same every time; each sample contains those of smaller counts with its number.
pub(crate) fn draws(rows: &[usize], count: usize) -> Vec<Vec<usize>> {
    if count >= rows.len() {
        return vec![rows.to_vec()];
    }
    let draw = |seed: u64| {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        // Of the rows that are left, one at a time goes to the end of those drawn (Fisher and Yates).
        let mut order: Vec<usize> = (0..rows.len()).collect();
        for drawn in 0..count {
            let other = random.random_range(drawn as u64..order.len() as u64) as usize;
            order.swap(drawn, other);
        }
        order.truncate(count);
        order.sort_unstable();
        order.into_iter().filter_map(|at| rows.get(at).copied()).collect()
    };
    (0..DRAWS).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_grow_to_all_labels() {
        assert_eq!(LabelCounts::Growing.up_to(7, 128), [7, 14, 28, 56, 128]);
        assert_eq!(LabelCounts::Growing.up_to(7, 64), [7, 14, 28, 64]);
        assert_eq!(LabelCounts::Growing.up_to(9, 5), [5]);
        assert_eq!("100,999,60,60".parse::<LabelCounts>().unwrap().up_to(7, 120), [60, 100, 120]);
        assert!("20,0".parse::<LabelCounts>().is_err() && "x".parse::<LabelCounts>().is_err());
    }

    #[test]
    fn draws_differ_hold_no_row_twice_and_contain_those_of_fewer_labels() {
        let rows: Vec<usize> = (100..200).collect();
        let [few, many] = [10, 40].map(|count| draws(&rows, count));
        assert_eq!(few, draws(&rows, 10), "the same every time");
        for (few, many) in few.iter().zip(&many) {
            assert!(few.len() == 10 && many.len() == 40);
            assert!(many.is_sorted_by(|one, next| one < next) && many.iter().all(|row| rows.contains(row)));
            assert!(few.iter().all(|row| many.contains(row)), "{few:?} {many:?}");
        }
        assert!(few.len() == 5 && few.iter().all(|draw| few.iter().filter(|other| draw == *other).count() == 1));
        assert_eq!(draws(&rows, 100), [rows]);
    }
}
