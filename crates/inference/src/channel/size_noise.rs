//! The sizes with which a command is seen: its bytes, what varies of its actions, ε, and the blocks of a cipher.

use std::collections::BTreeMap;

use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{Basis, EpsilonDistribution, LearnedPadding, Model};

/// Less probable sizes of actions that vary are left out.
const LEAST_PROBABILITY: f64 = 1e-12;

/// What an observer knows of ε.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpsilonKnowledge {
    /// How often it has which value.
    Distribution,
    /// Its value: that of a message number that grows, for example. The worst case, as long as sizes are seen exactly; in
    /// blocks, ε is taken to be 0.
    Value,
}

/// How sizes vary.
#[derive(Debug)]
pub struct SizeNoise {
    overhead: i64,
    /// `None` if the observer knows ε.
    epsilon: Option<EpsilonDistribution>,
    /// The different distributions of the sizes of actions that vary.
    varying: Vec<Vec<(i64, f64)>>,
    /// Which of them an action has, by its index.
    of_action: Vec<Option<usize>>,
    /// How commands are padded, where the model says it.
    padding: Option<PaddingPolicy>,
    blocks: Option<Blocks>,
    /// How often [`Self::sizes`] was computed.
    #[cfg(test)]
    pub(crate) distributions_made: usize,
    /// What was computed before.
    known_sums: BTreeMap<Vec<u32>, Vec<(i64, f64)>>,
    known_epsilons: BTreeMap<i64, Vec<(i64, f64)>>,
}

/// Sizes on the wire are multiples of a block.
#[derive(Debug, Clone, Copy)]
struct Blocks {
    bytes: u64,
    /// The least that the cipher adds.
    added: u64,
}

impl Blocks {
    /// Those of the cipher or the padding that a model was learned on.
    fn of(model: &Model) -> Option<Self> {
        match (&model.learned.basis, &model.learned.padding) {
            (_, Some(LearnedPadding::Modulo(bytes))) => Some(Self { bytes: u64::from(*bytes), added: 0 }),
            (Basis::Plaintext { record_overhead: [least, most], .. }, _) if most > least => {
                Some(Self { bytes: u64::from(most - least) + 1, added: u64::from(*least) })
            }
            _ => None,
        }
    }
}

/// The bytes that sizes are multiples of on the wire, by the cipher or the padding that a model was learned on.
pub fn block_bytes(model: &Model) -> Option<u64> {
    Blocks::of(model).map(|blocks| blocks.bytes)
}

impl SizeNoise {
    /// How the sizes of a model's commands vary for an observer.
    pub fn new(model: &Model, knowledge: EpsilonKnowledge) -> Self {
        let mut varying: Vec<Vec<(i64, f64)>> = Vec::new();
        let of_action = model.actions.iter().map(|action| {
            let sizes: Vec<(i64, f64)> = action.sizes().collect();
            action.varies().then(|| {
                varying.iter().position(|known| *known == sizes).unwrap_or_else(|| {
                    varying.push(sizes);
                    varying.len() - 1
                })
            })
        });
        let of_action = of_action.collect();
        let epsilon = (knowledge == EpsilonKnowledge::Distribution)
            .then(|| EpsilonDistribution::new(&model.neighbours, model.smoothing));
        let padding = match &model.learned.padding {
            Some(LearnedPadding::Policy(policy)) => Some(policy.clone()),
            _ => None,
        };
        let blocks = Blocks::of(model);
        let (known_sums, known_epsilons) = (BTreeMap::new(), BTreeMap::new());
        Self {
            overhead: model.overhead,
            epsilon,
            varying,
            of_action,
            padding,
            blocks,
            #[cfg(test)]
            distributions_made: 0,
            known_sums,
            known_epsilons,
        }
    }

    /// The distribution that an action's sizes have, by its index; `None` if it has a single one.
    pub fn varying(&self, action: usize) -> Option<usize> {
        self.of_action.get(action).copied().flatten()
    }

    /// How many distributions there are.
    pub fn distributions(&self) -> usize {
        self.varying.len()
    }

    /// The sizes with which a command is seen, in ascending order with their probabilities: `bytes` are those of its
    /// actions of a single size, `varying` says how many it has of each distribution.
    pub fn sizes(&mut self, bytes: i64, varying: &[u32]) -> Vec<(u64, f64)> {
        #[cfg(test)]
        (self.distributions_made += 1);
        let without_varying = self.overhead.saturating_add(bytes);
        let mut seen: BTreeMap<u64, f64> = BTreeMap::new();
        for (added, probability) in self.sums(varying) {
            let explained = without_varying.saturating_add(added);
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

    /// At least so many sizes are seen of such a command, as [`Self::sizes`] would find with more work: those with the least
    /// ε that each sum of sizes allows.
    pub fn least_sizes(&mut self, bytes: i64, varying: &[u32]) -> usize {
        let are_exact = self.padding.is_none() && self.blocks.is_none();
        if !are_exact || varying.iter().all(|count| *count == 0) {
            return 1;
        }
        let without_varying = self.overhead.saturating_add(bytes);
        let mut sizes: Vec<i64> = Vec::new();
        for (added, _) in self.sums(varying) {
            let explained = without_varying.saturating_add(added);
            let least = self.epsilons(explained).first();
            sizes.extend(least.map(|(epsilon, _)| explained.saturating_add(*epsilon).max(0)));
        }
        sizes.sort_unstable();
        sizes.dedup();
        sizes.len()
    }

    /// The bytes of actions whose sizes vary, so many of each distribution, with their probabilities.
    fn sums(&mut self, varying: &[u32]) -> Vec<(i64, f64)> {
        if let Some(known) = self.known_sums.get(varying) {
            return known.clone();
        }
        let last = varying.iter().rposition(|count| *count > 0);
        let found: Vec<(i64, f64)> = match last.and_then(|last| Some((last, self.varying.get(last)?.clone()))) {
            None => vec![(0, 1.0)],
            Some((last, distribution)) => {
                let mut without_one = varying.to_vec();
                without_one.get_mut(last).into_iter().for_each(|count| *count -= 1);
                let mut sums = BTreeMap::new();
                for (size, probability) in self.sums(&without_one) {
                    for (added, share) in &distribution {
                        *sums.entry(size + added).or_insert(0.0) += probability * share;
                    }
                }
                sums.retain(|_, probability| *probability > LEAST_PROBABILITY);
                sums.into_iter().collect()
            }
        };
        self.known_sums.insert(varying.to_vec(), found.clone());
        found
    }

    /// P(ε | x).
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
        let Some(Blocks { bytes, added }) = self.blocks else { return padded };
        let in_blocks = |size: u64| ((size + added).div_ceil(bytes) * bytes).saturating_sub(added);
        padded.into_iter().map(|(size, probability)| (in_blocks(size), probability)).collect()
    }
}
