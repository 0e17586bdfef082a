//! The sizes with which a command is seen: its bytes, what varies of its actions, ε, and the blocks of a cipher.

use std::collections::BTreeMap;

use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{EpsilonDistribution, LearnedPadding, Model, Pmf, SizeBlocks};

/// What an observer knows of ε.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpsilonKnowledge {
    /// How often it has which value.
    Distribution,
    /// Its value: that of a message number that grows, for example. The worst case, as long as sizes are seen exactly; in
    /// blocks, ε is taken to be 0.
    Value,
}

/// With which sizes commands are seen.
pub trait SizeNoise {
    fn varying(&self) -> &VaryingSizes;

    /// The sizes with which a command is seen, in ascending order with their probabilities: `bytes` are those of its
    /// actions, so many, and `varying` says how many of them there are of each distribution.
    fn sizes(&mut self, bytes: i64, actions: u32, varying: &[u32]) -> Vec<(u64, f64)>;

    /// At least so many sizes are seen of such a command, as [`Self::sizes`] would find with more work.
    fn least_sizes(&mut self, _bytes: i64, _varying: &[u32]) -> usize {
        1
    }
}

#[derive(Debug)]
pub struct ModelSizes {
    overhead: i64,
    /// `None` if the observer knows ε.
    epsilon: Option<EpsilonDistribution>,
    varying: VaryingSizes,
    padding: Option<PaddingPolicy>,
    blocks: Option<SizeBlocks>,
    #[cfg(test)]
    pub(crate) distributions_made: usize,
    /// P(ε | x) by x.
    known_epsilons: BTreeMap<i64, Vec<(i64, f64)>>,
}

/// The bytes of the blocks that sizes fill on the wire, by the cipher or the padding that a model was learned on.
pub fn block_bytes(model: &Model) -> Option<u64> {
    model.learned.blocks().map(|blocks| blocks.bytes)
}

impl ModelSizes {
    pub fn new(model: &Model, knowledge: EpsilonKnowledge) -> Self {
        let varying = model.actions.iter().map(|action| {
            let sizes = action.sizes().map(|(size, share)| (size - action.size, share));
            action.varies().then(|| Pmf::from_values(sizes))
        });
        let epsilon = (knowledge == EpsilonKnowledge::Distribution)
            .then(|| EpsilonDistribution::new(&model.neighbours, model.smoothing));
        let padding = match &model.learned.padding {
            Some(LearnedPadding::Policy(policy)) => Some(policy.clone()),
            _ => None,
        };
        Self {
            overhead: model.overhead,
            epsilon,
            varying: VaryingSizes::new(varying),
            padding,
            blocks: model.learned.blocks(),
            #[cfg(test)]
            distributions_made: 0,
            known_epsilons: BTreeMap::new(),
        }
    }

    fn epsilons(&mut self, explained: i64) -> &[(i64, f64)] {
        let epsilon = self.epsilon.as_ref();
        self.known_epsilons.entry(explained).or_insert_with(|| {
            let values = epsilon.map(|epsilon| epsilon.given_explained(explained));
            let values = values.map(|values| values.iter().map(|value| (value.epsilon, value.weight)).collect());
            values.unwrap_or_else(|| vec![(0, 1.0)])
        })
    }

    /// The sizes that an observer sees, with their probabilities: the greatest plaintext that is as long on the wire.
    fn on_the_wire(&self, size: u64) -> Vec<(u64, f64)> {
        let padded = match &self.padding {
            Some(policy) => policy.padded_sizes(size).iter().map(|padded| (padded.bytes, padded.probability)).collect(),
            None => vec![(size, 1.0)],
        };
        let Some(blocks) = self.blocks else { return padded };
        padded.into_iter().map(|(size, probability)| (blocks.greatest(size), probability)).collect()
    }
}

impl SizeNoise for ModelSizes {
    fn varying(&self) -> &VaryingSizes {
        &self.varying
    }

    fn sizes(&mut self, bytes: i64, _actions: u32, varying: &[u32]) -> Vec<(u64, f64)> {
        #[cfg(test)]
        (self.distributions_made += 1);
        let mut seen: BTreeMap<u64, f64> = BTreeMap::new();
        for (added, probability) in self.varying.sum(varying).clone().iter() {
            let explained = self.overhead.saturating_add(bytes).saturating_add(added);
            for (epsilon, weight) in self.epsilons(explained).to_vec() {
                let size = u64::try_from(explained.saturating_add(epsilon)).unwrap_or(0);
                for (size, share) in self.on_the_wire(size) {
                    *seen.entry(size).or_insert(0.0) += probability * weight * share;
                }
            }
        }
        let all: f64 = seen.values().sum();
        seen.into_iter().map(|(size, probability)| (size, probability / all)).collect()
    }

    /// Those with the least ε that each sum of sizes allows.
    fn least_sizes(&mut self, bytes: i64, varying: &[u32]) -> usize {
        let are_exact = self.padding.is_none() && self.blocks.is_none();
        if !are_exact || varying.iter().all(|count| *count == 0) {
            return 1;
        }
        let mut sizes: Vec<i64> = Vec::new();
        for (added, _) in self.varying.sum(varying).clone().iter() {
            let explained = self.overhead.saturating_add(bytes).saturating_add(added);
            let least = self.epsilons(explained).first();
            sizes.extend(least.map(|(epsilon, _)| explained.saturating_add(*epsilon).max(0)));
        }
        sizes.sort_unstable();
        sizes.dedup();
        sizes.len()
    }
}

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
