//! Secrets as numbers.

/// The secret of each of some commands, as a number from 0 on, each of which occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretNumbers {
    numbers: Vec<u32>,
    count: usize,
}

impl SecretNumbers {
    /// Numbers secrets in ascending order.
    pub fn new<S: Ord + Clone>(secrets: &[S]) -> Self {
        let mut known = secrets.to_vec();
        known.sort();
        known.dedup();
        let number = |secret: &S| known.binary_search(secret).unwrap_or_default() as u32;
        Self { numbers: secrets.iter().map(number).collect(), count: known.len() }
    }

    /// The number of each command's secret.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// How many different secrets there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many commands have each secret.
    pub fn times(&self) -> Vec<u64> {
        let mut times = vec![0; self.count];
        self.numbers.iter().for_each(|number| times[*number as usize] += 1);
        times
    }
}
