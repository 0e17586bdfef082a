//! What a padding table is to achieve: which leakage is to be small, and what must hold for each bucket.

use sizeleak_inference::space::SizeRow;

/// Which leakage a table is to make small. Sizes are taken to be determined by commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// The Bayes vulnerability: how probable the observer's first guess is to be right; the sum over buckets of the
    /// greatest prior in them.
    Vulnerability,
    /// The mutual information of command and bucket in bits: the entropy of the bucket.
    Information,
    /// The number of buckets: the multiplicative Bayes capacity, which does not depend on the prior.
    Buckets,
}

/// What must hold for each bucket: the worst case, where a leakage is an average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableRules {
    /// The most that the most probable command of a bucket may have of its probability; 1 for any.
    pub most_posterior: f64,
    /// The fewest commands in a bucket.
    pub fewest_commands: f64,
}

impl Default for TableRules {
    fn default() -> Self {
        Self { most_posterior: 1.0, fewest_commands: 1.0 }
    }
}

impl Objective {
    /// What a bucket with these commands adds to the leakage.
    pub fn of_bucket(self, bucket: &SizeRow) -> f64 {
        match self {
            Self::Vulnerability => bucket.greatest,
            Self::Information if bucket.probability > 0.0 => -bucket.probability * bucket.probability.log2(),
            Self::Information => 0.0,
            Self::Buckets => 1.0,
        }
    }
}

impl TableRules {
    /// Whether a bucket with these commands is allowed. A share that exceeds the limit by rounding alone is.
    pub fn allow(&self, bucket: &SizeRow) -> bool {
        bucket.commands >= self.fewest_commands * (1.0 - 1e-12)
            && bucket.greatest <= self.most_posterior * bucket.probability * (1.0 + 1e-12)
    }
}
