//! Sums over secrets that look alike, such as commands: how many there are, how probable they are, and the most
//! probable ones.

use sizeleak_model::Weight;

/// So many of the most probable commands are kept.
pub const KEPT: usize = 10;

/// Weights of the same command, computed in two ways, differ by less than this share.
const ROUNDING: f64 = 1e-9;

/// What is known of some secrets together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecretSums {
    pub count: f64,
    /// The sum of their weights w.
    pub weight: f64,
    /// Σ w·log₂ w.
    pub weighted_log: f64,
    /// The greatest weights, greatest first; 0 where there are fewer commands.
    pub greatest: [f64; KEPT],
}

impl SecretSums {
    pub const NONE: Self = Self { count: 0.0, weight: 0.0, weighted_log: 0.0, greatest: [0.0; KEPT] };

    pub fn one(weight: f64) -> Self {
        Self::equal(1.0, weight)
    }

    pub fn equal(count: f64, weight: f64) -> Self {
        let mut greatest = [0.0; KEPT];
        greatest.iter_mut().take(count as usize).for_each(|kept| *kept = weight);
        Self { count, weight: count * weight, weighted_log: count * weight_log(weight), greatest }
    }

    pub fn most(&self) -> f64 {
        self.greatest.first().copied().unwrap_or(0.0)
    }

    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            count: self.count,
            weight: self.weight * factor,
            weighted_log: factor * self.weighted_log + weight_log(factor) * self.weight,
            greatest: self.greatest.map(|weight| weight * factor),
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.weight += other.weight;
        self.weighted_log += other.weighted_log;
        for weight in other.greatest {
            if !insert(&mut self.greatest, weight) {
                break;
            }
        }
    }

    /// Makes one command more probable than it was.
    pub(super) fn raise(&mut self, from: f64, to: f64) {
        self.weight += to - from;
        self.weighted_log += weight_log(to) - weight_log(from);
        // Whichever of equal ones it is. Where it was not among the greatest, they stay, but for the least of them.
        let at = self.greatest.iter().position(|kept| *kept > 0.0 && (kept / from - 1.0).abs() < ROUNDING);
        if let Some(at) = at {
            self.greatest[at..].rotate_left(1);
            self.greatest[KEPT - 1] = 0.0;
        }
        insert(&mut self.greatest, to);
    }

    /// Adds all commands that consist of one of each: their weights multiply.
    fn add_products(&mut self, one: &Self, other: &Self) {
        self.count += one.count * other.count;
        self.weight += one.weight * other.weight;
        self.weighted_log += one.weighted_log * other.weight + one.weight * other.weighted_log;
        for first in one.greatest {
            let mut is_some = false;
            for second in other.greatest {
                if !insert(&mut self.greatest, first * second) {
                    break;
                }
                is_some = true;
            }
            if !is_some {
                break;
            }
        }
    }
}

impl Weight for SecretSums {
    const NONE: Self = Self::NONE;

    fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.add(&other.scaled(factor));
    }

    fn add_product(&mut self, one: &Self, other: &Self) {
        if !other.is_none() {
            self.add_products(one, other);
        }
    }

    fn is_none(&self) -> bool {
        self.count <= 0.0
    }
}

pub(crate) fn weight_log(weight: f64) -> f64 {
    if weight > 0.0 { weight * weight.log2() } else { 0.0 }
}

/// Inserts a weight among the greatest ones, in descending order, unless all of them are as great.
pub(crate) fn insert(greatest: &mut [f64], weight: f64) -> bool {
    let at = greatest.partition_point(|kept| *kept >= weight);
    let Some(tail) = greatest.get_mut(at..).filter(|tail| !tail.is_empty()) else { return false };
    tail.rotate_right(1);
    if let Some(first) = tail.first_mut() {
        *first = weight;
    }
    true
}

/// Commands of one size that are equally probable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommandGroup {
    pub bytes: u64,
    /// How many there are; as a floating-point number, since it may exceed any integer type.
    pub commands: f64,
    /// The prior probability of each of them.
    pub probability: f64,
}

/// All commands of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeRow {
    pub bytes: u64,
    /// How many commands have it; as a floating-point number, since it may exceed any integer type.
    pub commands: f64,
    /// The prior probability of all of them together.
    pub probability: f64,
    /// The prior probability of the most probable one.
    pub greatest: f64,
    /// The sum of p·log₂(p) over their prior probabilities p, which is not positive.
    pub plogp: f64,
}

impl SizeRow {
    /// The commands of one size that these sums are of.
    pub fn new(bytes: u64, sums: &SecretSums) -> Self {
        let SecretSums { count: commands, weight: probability, weighted_log: plogp, .. } = *sums;
        Self { bytes, commands, probability, greatest: sums.most(), plogp }
    }

    /// Adds the commands of another size, as padding of both to one size would. The size stays.
    pub fn add(&mut self, other: &Self) {
        self.commands += other.commands;
        self.probability += other.probability;
        self.greatest = self.greatest.max(other.greatest);
        self.plogp += other.plogp;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_all_pairs() {
        let weights = |weights: &[f64]| {
            let mut sums = SecretSums::NONE;
            for weight in weights {
                sums.add(&SecretSums::one(*weight));
            }
            sums
        };
        let (one, other) = ([0.5, 0.25, 0.1, 0.1], [0.3, 0.2, 0.7]);
        let mut products: Vec<f64> = one.iter().flat_map(|one| other.iter().map(move |other| one * other)).collect();
        products.sort_by(|a, b| b.total_cmp(a));
        let mut sums = SecretSums::NONE;
        sums.add_products(&weights(&one), &weights(&other));
        assert_eq!(sums.greatest.as_slice(), &products[..KEPT]);
        let expected = weights(&products);
        let pairs = [(sums.count, 12.0), (sums.weight, expected.weight), (sums.weighted_log, expected.weighted_log)];
        assert!(pairs.iter().all(|(one, other)| (one - other).abs() < 1e-12), "{pairs:?}");
    }

    #[test]
    fn a_command_that_is_raised_counts_with_its_new_weight() {
        let mut weights: Vec<f64> = (1..=12).map(|at| 0.01 * f64::from(at)).collect();
        for at in [0, 5, 11] {
            let sums = |weights: &[f64]| {
                let mut sums = SecretSums::NONE;
                for weight in weights {
                    sums.add(&SecretSums::one(*weight));
                }
                sums
            };
            let mut raised = sums(&weights);
            raised.raise(weights[at], weights[at] + 0.035);
            weights[at] += 0.035;
            let expected = sums(&weights);
            assert_eq!((raised.count, raised.greatest), (expected.count, expected.greatest));
            assert!(
                (raised.weight - expected.weight).abs() + (raised.weighted_log - expected.weighted_log).abs() < 1e-12
            );
        }
    }

    #[test]
    fn scaled_commands_are_those_of_scaled_weights() {
        let mut sums = SecretSums::one(0.5);
        sums.add(&SecretSums::one(0.25));
        let scaled = sums.scaled(0.5);
        assert!((scaled.weighted_log - (0.25 * -2.0 + 0.125 * -3.0)).abs() < 1e-12);
        assert_eq!((scaled.weight, scaled.greatest[1]), (0.375, 0.125));
    }
}
