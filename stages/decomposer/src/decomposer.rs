//! The stage: commands with values of ε in, commands with candidates out.

use std::collections::BTreeMap;
use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, Correction, Identification, Notice, what};
use sizeleak_signature::Model;
use sizeleak_stage::{Emit, Stage, StageError};

use crate::solver::{Solver, SolverError};

/// A range of sizes wider than this comes from no block cipher; such a command stays unexplained.
const WIDEST_RANGE: i64 = 4096;

/// Lists the multisets of actions that explain each command.
#[derive(Debug)]
pub struct Decomposer {
    model: Model,
    names: Vec<Arc<str>>,
    solver: Solver,
    limit: usize,
    unexplained: u64,
    cut_lists: u64,
}

/// A sum the actions may have, with what speaks for it.
#[derive(Debug, Clone, Copy)]
struct Sum {
    bytes: i64,
    epsilon: i64,
    weight: f64,
    count: u64,
}

impl Decomposer {
    /// A decomposer that lists `limit` candidates of a command at most.
    ///
    /// # Errors
    /// [`SolverError`] where the model's actions and inventory cannot be solved for.
    pub fn new(model: Model, limit: usize) -> Result<Self, SolverError> {
        let solver = Solver::new(&model.actions, &model.limits()?)?;
        let names = model.actions.iter().map(|action| Arc::from(action.name.as_str())).collect();
        Ok(Self { model, names, solver, limit, unexplained: 0, cut_lists: 0 })
    }

    /// The sums the actions may have, those for which most speaks first. Every size of the command's range with every
    /// value of ε makes one; where several make the same, their weights add up and the heaviest names its ε.
    fn sums(&mut self, correction: &Correction, [least, most]: [i64; 2]) -> Result<Vec<Sum>, SolverError> {
        let mut weights: BTreeMap<i64, (f64, f64, i64)> = BTreeMap::new();
        for size in least..=most {
            for value in &correction.epsilons {
                let bytes = size.saturating_sub(self.model.overhead).saturating_sub(value.epsilon);
                let (weight, heaviest, epsilon) = weights.entry(bytes).or_insert((0.0, 0.0, value.epsilon));
                *weight += value.weight;
                if value.weight > *heaviest {
                    (*heaviest, *epsilon) = (value.weight, value.epsilon);
                }
            }
        }
        let mut sums = Vec::new();
        for (bytes, (weight, _, epsilon)) in weights {
            let count = self.solver.count(bytes)?;
            if count > 0 {
                sums.push(Sum { bytes, epsilon, weight, count });
            }
        }
        sums.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.bytes.cmp(&b.bytes)));
        Ok(sums)
    }

    /// The candidates of these sums, as many as are listed. Every multiset of actions is as likely as any other before
    /// its size is seen, so a candidate's probability is its sum's weight among the weights of all candidates.
    fn candidates(&mut self, sums: &[Sum]) -> Result<Vec<Candidate>, SolverError> {
        let total: f64 = sums.iter().map(|sum| sum.weight * sum.count as f64).sum();
        let mut candidates = Vec::new();
        for sum in sums {
            let room = self.limit.saturating_sub(candidates.len());
            for counts in self.solver.solutions(sum.bytes)?.take(room) {
                let named = self.names.iter().cloned().zip(counts).filter(|(_, count)| *count > 0);
                let actions = Actions(named.collect());
                candidates.push(Candidate { actions, epsilon: sum.epsilon, probability: sum.weight / total });
            }
        }
        Ok(candidates)
    }

    fn tell_unexplained(
        &mut self,
        correction: &Correction,
        range: [i64; 2],
        out: &mut dyn Emit,
    ) -> Result<(), StageError> {
        self.unexplained += 1;
        let [least, most] = range;
        let detail = if least == most {
            format!(
                "no actions add up to the {least} bytes of this message: another kind of message, or another gateway"
            )
        } else {
            format!("no actions add up to the {least} to {most} bytes of this message")
        };
        let notice = Notice {
            time_ns: Some(correction.command.time_ns),
            stage: Self::NAME.into(),
            flow: Some(correction.command.flow),
            what: what::UNEXPLAINED.into(),
            bytes: Some(correction.command.size),
            detail: Some(detail),
        };
        Ok(out.emit(notice.into())?)
    }
}

impl Stage for Decomposer {
    const NAME: &'static str = "decomposer";
    type Input = Correction;

    fn process(&mut self, correction: Correction, out: &mut dyn Emit) -> Result<(), StageError> {
        let command = &correction.command;
        let range = self.model.sizes(command.size, command.records, command.plaintext).map_err(StageError::failed)?;
        let width = range[1].saturating_sub(range[0]);
        let sums = if (0..=WIDEST_RANGE).contains(&width) {
            self.sums(&correction, range).map_err(StageError::failed)?
        } else {
            Vec::new()
        };
        let candidate_count = sums.iter().map(|sum| sum.count).fold(0, u64::saturating_add);
        let candidates = self.candidates(&sums).map_err(StageError::failed)?;
        if candidate_count == 0 {
            self.tell_unexplained(&correction, range, out)?;
        }
        let listed = candidates.len() as u64;
        self.cut_lists += u64::from(listed < candidate_count);
        let command = correction.command;
        let (min_actions, max_actions) = (None, None);
        Ok(out.emit(Identification { command, candidates, candidate_count, listed, min_actions, max_actions }.into())?)
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("unexplained", self.unexplained), ("cut_lists", self.cut_lists)]
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Command, Frame, WeightedEpsilon};

    use super::*;

    fn decomposer(limit: usize) -> Decomposer {
        let model = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
            [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
            [[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
            [replies]\nfixed = 0.0\nper_action = 0.0\ndeviations = []\n\
            [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\n\
            basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n";
        Decomposer::new(Model::from_toml(model).unwrap(), limit).unwrap()
    }

    fn decompose(limit: usize, plaintext: [u64; 2], epsilons: &[(i64, f64)]) -> (Identification, Vec<Frame>) {
        let command = Command {
            time_ns: 1,
            end_ns: 2,
            flow: 3,
            size: plaintext[1],
            plaintext: Some(plaintext),
            records: 1,
            replies: 0,
            reply_bytes: 0,
        };
        let epsilons = epsilons.iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon: *epsilon, weight: *weight });
        let mut out: Vec<Frame> = Vec::new();
        decomposer(limit).process(Correction { command, epsilons: epsilons.collect() }, &mut out).unwrap();
        let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
        (identification, out)
    }

    fn listed(identification: &Identification) -> Vec<([u32; 2], i64, f64)> {
        let counts = |actions: &Actions| [actions.count("on"), actions.count("off")];
        let listed = identification.candidates.iter();
        listed.map(|candidate| (counts(&candidate.actions), candidate.epsilon, candidate.probability)).collect()
    }

    #[test]
    fn heavier_epsilons_come_first_and_probabilities_sum_to_one() {
        let (identification, _) = decompose(10, [141, 141], &[(0, 0.75), (1, 0.25)]);
        assert_eq!(listed(&identification), [([1, 1], 0, 0.75), ([2, 0], 1, 0.25)]);
        let (identification, _) = decompose(10, [141, 141], &[(7, 0.9), (0, 0.1)]);
        assert_eq!(listed(&identification), [([1, 1], 0, 1.0)], "an ε without candidates takes no share");
    }

    #[test]
    fn the_inventory_bounds_what_is_listed() {
        let (identification, notices) = decompose(10, [220, 220], &[(0, 1.0)]);
        assert_eq!((identification.candidate_count, notices.len()), (0, 1), "four actions, three plugs");
    }

    #[test]
    fn a_cut_list_still_counts() {
        let (identification, _) = decompose(1, [141, 141], &[(0, 0.5), (1, 0.5)]);
        assert_eq!((identification.candidate_count, identification.listed), (2, 1));
        assert!((identification.candidates[0].probability - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_range_of_sizes_is_searched_whole() {
        let (identification, _) = decompose(10, [96, 111], &[(0, 1.0)]);
        assert_eq!(listed(&identification), [([1, 0], 0, 0.5), ([0, 1], 0, 0.5)]);
    }

    #[test]
    fn hostile_sizes_are_unexplained() {
        for range in [[u64::MAX; 2], [0, u64::MAX], [u64::MAX, 0]] {
            let (identification, notices) = decompose(10, range, &[(i64::MIN, 0.5), (i64::MAX, 0.5)]);
            assert_eq!((identification.candidate_count, notices.len()), (0, 1));
        }
    }
}
