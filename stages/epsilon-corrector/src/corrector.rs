//! The stage: commands in, commands with the likely values of ε out.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Command, Correction, Notice, WeightedEpsilon, what};
use sizeleak_signature::{Basis, Model};
use sizeleak_stage::{Emit, Stage, StageError};

/// Flows of which an assumption was told already; more are assumed silently, and counted.
const MOST_FLOWS: usize = 100_000;

/// Of a range of sizes, as block ciphers leave it, this many are asked for ε.
const SIZES_ASKED: i64 = 64;

/// Adds the likely values of ε to every command.
#[derive(Debug)]
pub struct EpsilonCorrector {
    model: Model,
    k: usize,
    assumed: BTreeSet<u64>,
    assumptions: u64,
}

impl EpsilonCorrector {
    /// A corrector that asks the `k` nearest tuples of the model.
    pub fn new(model: Model, k: usize) -> Self {
        Self { model, k, assumed: BTreeSet::new(), assumptions: 0 }
    }

    /// The values of ε at a size, or over a range of sizes that are equally likely.
    fn epsilons(&self, [least, most]: [i64; 2]) -> Vec<WeightedEpsilon> {
        let width = most.saturating_sub(least).max(0);
        let step = usize::try_from(width / SIZES_ASKED + 1).unwrap_or(usize::MAX);
        let mut weights: BTreeMap<i64, f64> = BTreeMap::new();
        let mut asked = 0.0;
        for size in (least..=most.max(least)).step_by(step) {
            asked += 1.0;
            for value in self.model.neighbours.estimate(size, self.k) {
                *weights.entry(value.epsilon).or_default() += value.weight;
            }
        }
        let shares = weights.into_iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight: weight / asked });
        let mut epsilons: Vec<WeightedEpsilon> = shares.collect();
        epsilons.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.epsilon.cmp(&b.epsilon)));
        epsilons
    }

    /// Tells once a flow that its cipher suite is taken to be the model's.
    fn tell_assumption(&mut self, command: &Command, out: &mut dyn Emit) -> Result<(), StageError> {
        let Basis::Plaintext { cipher_suite, .. } = &self.model.learned.basis else { return Ok(()) };
        if command.plaintext.is_some() {
            return Ok(());
        }
        self.assumptions += 1;
        if self.assumed.len() >= MOST_FLOWS || !self.assumed.insert(command.flow) {
            return Ok(());
        }
        let notice = Notice {
            time_ns: Some(command.time_ns),
            stage: Self::NAME.into(),
            flow: Some(command.flow),
            what: what::ASSUMED.into(),
            bytes: None,
            detail: Some(format!("its handshake was not seen: taken to use the model's cipher suite, {cipher_suite}")),
        };
        Ok(out.emit(notice.into())?)
    }
}

impl Stage for EpsilonCorrector {
    const NAME: &'static str = "epsilon-corrector";
    type Input = Command;

    fn process(&mut self, command: Command, out: &mut dyn Emit) -> Result<(), StageError> {
        let sizes = self.model.sizes(command.size, command.records, command.plaintext).map_err(StageError::failed)?;
        self.tell_assumption(&command, out)?;
        let epsilons = self.epsilons(sizes);
        Ok(out.emit(Correction { command, epsilons }.into())?)
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("assumed_cipher", self.assumptions)]
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Frame;

    use super::*;

    const MODEL: &str = "schema = 1\noverhead = 60\nk = 2\ntuples = [[100, 0, 1], [102, 1, 1], [200, 5, 1]]\n\
        [[action]]\nname = \"on\"\nsize = 40\n[replies]\nfixed = 0.0\nper_action = 0.0\ndeviations = []\n\
        [learned]\nmethod = \"robust\"\ncommands = 3\nversion = \"0.1.0\"\n";

    fn corrector(basis: &str) -> EpsilonCorrector {
        let model = Model::from_toml(&format!("{MODEL}{basis}")).unwrap();
        let k = model.k;
        EpsilonCorrector::new(model, k)
    }

    fn plaintext_basis() -> EpsilonCorrector {
        corrector("basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n")
    }

    fn command(size: u64, plaintext: Option<[u64; 2]>) -> Command {
        Command { time_ns: 1, end_ns: 2, flow: 3, size, plaintext, records: 1, replies: 0, reply_bytes: 0 }
    }

    fn correct(corrector: &mut EpsilonCorrector, command: Command) -> (Vec<(i64, f64)>, usize) {
        let mut out: Vec<Frame> = Vec::new();
        corrector.process(command, &mut out).unwrap();
        let Some(Frame::Correction(correction)) = out.pop() else { panic!("{out:?}") };
        (correction.epsilons.iter().map(|value| (value.epsilon, value.weight)).collect(), out.len())
    }

    #[test]
    fn the_nearest_tuples_weigh_by_their_distance() {
        let mut corrector = plaintext_basis();
        assert_eq!(correct(&mut corrector, command(999, Some([100, 100]))), (vec![(0, 0.75), (1, 0.25)], 0));
        assert_eq!(correct(&mut corrector, command(124, None)), (vec![(0, 0.75), (1, 0.25)], 1), "24 bytes of cipher");
        assert_eq!(correct(&mut corrector, command(124, None)).1, 0, "told once a flow");
        corrector.k = 1;
        assert_eq!(correct(&mut corrector, command(0, Some([170, 170]))).0, [(5, 1.0)]);
    }

    #[test]
    fn a_range_is_asked_everywhere_at_bounded_cost() {
        let mut corrector = plaintext_basis();
        corrector.k = 1;
        let (epsilons, _) = correct(&mut corrector, command(0, Some([100, 102])));
        assert_eq!(epsilons.iter().map(|(epsilon, _)| *epsilon).collect::<Vec<_>>(), [0, 1]);
        for hostile in [[0, u64::MAX], [u64::MAX, 0], [u64::MAX, u64::MAX]] {
            let (epsilons, _) = correct(&mut corrector, command(u64::MAX, Some(hostile)));
            assert!((epsilons.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_model_of_wire_sizes_refuses_a_known_cipher() {
        let mut corrector = corrector("basis = \"wire\"\n");
        assert_eq!(correct(&mut corrector, command(100, None)).1, 0);
        let mut out: Vec<Frame> = Vec::new();
        let error = corrector.process(command(100, Some([76, 76])), &mut out).unwrap_err();
        assert!(error.to_string().contains("learn again"), "{error}");
    }
}
