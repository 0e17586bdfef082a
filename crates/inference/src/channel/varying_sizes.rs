//! What varies of the bytes of a command's actions.

use std::collections::BTreeMap;

use sizeleak_model::Pmf;

/// By how many bytes actions are longer or shorter than counted, and the sums of that over the actions of commands.
#[derive(Debug)]
pub struct VaryingSizes {
    /// The distribution that an action has, by its index; `None` if its size does not vary.
    of_action: Vec<Option<usize>>,
    /// The different distributions.
    one: Vec<Pmf>,
    /// The sums so far, by how many actions of each distribution.
    sums: BTreeMap<Vec<u32>, Pmf>,
}

impl VaryingSizes {
    /// The distribution of each action; `None` if its size does not vary.
    pub fn new(of_actions: impl IntoIterator<Item = Option<Pmf>>) -> Self {
        let mut one: Vec<Pmf> = Vec::new();
        let mut number = |sizes: Pmf| {
            one.iter().position(|known| *known == sizes).unwrap_or_else(|| {
                one.push(sizes);
                one.len() - 1
            })
        };
        let of_action = of_actions.into_iter().map(|sizes| sizes.map(&mut number)).collect();
        Self { of_action, one, sums: BTreeMap::new() }
    }

    pub fn of_action(&self, action: usize) -> Option<usize> {
        self.of_action[action]
    }

    /// How many actions of each distribution a command has, given the counts of its actions.
    pub fn of_counts(&self, counts: &[u32]) -> Vec<u32> {
        let mut varying = vec![0; self.one.len()];
        for (at, count) in self.of_action.iter().zip(counts) {
            if let Some(at) = at {
                varying[*at] += count;
            }
        }
        varying
    }

    /// The sum over so many actions of each distribution.
    pub fn sum(&mut self, counts: &[u32]) -> &Pmf {
        if !self.sums.contains_key(counts) {
            let sum = match counts.iter().rposition(|count| *count > 0) {
                None => Pmf::certain(0),
                Some(last) => {
                    let mut without_one = counts.to_vec();
                    without_one[last] -= 1;
                    let one = self.one[last].clone();
                    self.sum(&without_one).convolve(&one).trimmed()
                }
            };
            self.sums.insert(counts.to_vec(), sum);
        }
        &self.sums[counts]
    }
}
