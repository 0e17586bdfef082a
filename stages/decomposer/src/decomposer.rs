//! The stage: commands with values of ε in, commands with candidates out.

use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, Correction, Identification, Notice, WeightedEpsilon, what};
use sizeleak_signature::Model;
use sizeleak_stage::{Emit, Stage, StageError};

use crate::count::{Solver, SolverError, SumTooLarge};
use crate::sums::{Sum, sums};

/// The candidates of a command take this many bytes at most in a frame, which may have 16 MiB; a list is cut there, as
/// it is at the limit the user sets.
const MAX_LISTED_BYTES: usize = 12 << 20;

/// Lists the multisets of actions that explain each command.
#[derive(Debug)]
pub struct Decomposer {
    model: Model,
    names: Vec<Arc<str>>,
    solver: Solver,
    limit: usize,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    unexplained: u64,
    too_large: u64,
    cut_lists: u64,
    unused_epsilons: u64,
}

/// A sum that some multisets of actions have.
#[derive(Debug, Clone, Copy)]
struct Explained {
    sum: Sum,
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
        Ok(Self { model, names, solver, limit, counts: Counts::default() })
    }

    /// The sums that explain a command, heaviest first; or why there is none.
    fn explain(&mut self, sizes: [i64; 2], epsilons: &[WeightedEpsilon]) -> Result<Vec<Explained>, String> {
        let [least, most] = sizes;
        let Some(sums) = sums(sizes, self.model.overhead, epsilons) else {
            return Err(format!("a message of {least} to {most} bytes is none that a cipher leaves: not taken apart"));
        };
        self.counts.unused_epsilons += sums.unused;
        let counted = sums.sums.into_iter().map(|sum| Ok(Explained { sum, count: self.solver.count(sum.bytes)? }));
        let counted: Result<Vec<Explained>, SumTooLarge> =
            counted.filter(|explained| !matches!(explained, Ok(Explained { count: 0, .. }))).collect();
        let explained = counted.map_err(|error| {
            self.counts.too_large += 1;
            error.to_string()
        })?;
        if explained.is_empty() {
            let size = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            let cause = "another kind of message, or another gateway";
            return Err(format!("no actions add up to the {size} bytes of this message: {cause}"));
        }
        Ok(explained)
    }

    /// The candidates of these sums, as many as are listed. Before its size is seen, every multiset of actions is as
    /// likely as any other; so a candidate's probability is what speaks for its sum, among what speaks for the sums of
    /// all candidates, listed or not.
    fn candidates(&mut self, explained: &[Explained]) -> Result<Vec<Candidate>, SumTooLarge> {
        let total: f64 = explained.iter().map(|explained| explained.sum.weight * explained.count as f64).sum();
        let mut candidates = Vec::new();
        let mut room = MAX_LISTED_BYTES;
        for Explained { sum, .. } in explained {
            let mut solutions = self.solver.solutions(sum.bytes)?;
            while candidates.len() < self.limit
                && let Some(counts) = solutions.advance()
            {
                let named = self.names.iter().zip(counts).filter(|(_, count)| **count > 0);
                let actions = Actions(named.map(|(name, count)| (Arc::clone(name), *count)).collect());
                let Some(rest) = room.checked_sub(encoded_bytes(&actions)) else { return Ok(candidates) };
                room = rest;
                candidates.push(Candidate { actions, epsilon: sum.epsilon, probability: sum.weight / total });
            }
        }
        Ok(candidates)
    }

    fn tell_unexplained(
        &mut self,
        correction: &Correction,
        detail: String,
        out: &mut dyn Emit,
    ) -> Result<(), StageError> {
        self.counts.unexplained += 1;
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
        let sizes = self.model.sizes(command.size, command.records, command.plaintext).map_err(StageError::failed)?;
        let explained = match self.explain(sizes, &correction.epsilons) {
            Ok(explained) => explained,
            Err(detail) => {
                self.tell_unexplained(&correction, detail, out)?;
                Vec::new()
            }
        };
        let candidates = self.candidates(&explained).map_err(StageError::failed)?;
        let candidate_count = explained.iter().fold(0, |total: u64, explained| total.saturating_add(explained.count));
        let listed = candidates.len() as u64;
        self.counts.cut_lists += u64::from(listed < candidate_count);
        let command = correction.command;
        let (min_actions, max_actions) = (None, None);
        Ok(out.emit(Identification { command, candidates, candidate_count, listed, min_actions, max_actions }.into())?)
    }

    fn finish(&mut self, _: &mut dyn Emit) -> Result<(), StageError> {
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("unexplained", self.counts.unexplained),
            ("too_large", self.counts.too_large),
            ("cut_lists", self.counts.cut_lists),
            ("unused_epsilons", self.counts.unused_epsilons),
        ]
    }
}

/// How many bytes a candidate takes in a frame at most: its three fields, and for each action a name and a count.
fn encoded_bytes(actions: &Actions) -> usize {
    let names: usize = actions.0.iter().map(|(name, _)| name.len() + 10).sum();
    64 + names
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Command, Frame, FrameWriter};

    use super::*;

    const LEARNED: &str = "[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
        [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\n\
        basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n";

    fn model(actions: &[(&str, i64)], plugs: Option<u32>) -> Model {
        let list: Vec<String> =
            actions.iter().map(|(name, size)| format!("[[action]]\nname = \"{name}\"\nsize = {size}\n")).collect();
        let names: Vec<&str> = actions.iter().map(|(name, _)| *name).collect();
        let device = plugs
            .map(|count| format!("[[device]]\nname = \"plug\"\ncount = {count}\nactions = {names:?}\n"))
            .unwrap_or_default();
        let head = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n";
        Model::from_toml(&format!("{head}{}{device}{LEARNED}", list.concat())).unwrap()
    }

    fn three_plugs(limit: usize) -> Decomposer {
        Decomposer::new(model(&[("on", 40), ("off", 41)], Some(3)), limit).unwrap()
    }

    fn decompose(
        decomposer: &mut Decomposer,
        plaintext: [u64; 2],
        epsilons: &[(i64, f64)],
    ) -> (Identification, Vec<Frame>) {
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
        decomposer.process(Correction { command, epsilons: epsilons.collect() }, &mut out).unwrap();
        let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
        (identification, out)
    }

    fn listed(identification: &Identification) -> Vec<([u32; 2], i64, f64)> {
        let counts = |actions: &Actions| [actions.count("on"), actions.count("off")];
        let listed = identification.candidates.iter();
        listed.map(|candidate| (counts(&candidate.actions), candidate.epsilon, candidate.probability)).collect()
    }

    fn detail(notices: &[Frame]) -> &str {
        let [Frame::Notice(notice)] = notices else { panic!("{notices:?}") };
        assert_eq!((&*notice.what, notice.flow), (what::UNEXPLAINED, Some(3)));
        notice.detail.as_deref().unwrap()
    }

    #[test]
    fn heavier_epsilons_come_first_and_probabilities_sum_to_one() {
        let mut decomposer = three_plugs(10);
        let (identification, _) = decompose(&mut decomposer, [141, 141], &[(0, 0.75), (1, 0.25)]);
        assert_eq!(listed(&identification), [([1, 1], 0, 0.75), ([2, 0], 1, 0.25)]);
        let (identification, _) = decompose(&mut decomposer, [141, 141], &[(7, 0.9), (0, 0.1)]);
        assert_eq!(listed(&identification), [([1, 1], 0, 1.0)], "an ε without candidates takes no share");
    }

    #[test]
    fn the_inventory_bounds_what_is_listed() {
        let (identification, notices) = decompose(&mut three_plugs(10), [220, 220], &[(0, 1.0)]);
        assert_eq!((identification.candidate_count, identification.listed), (0, 0), "four actions, three plugs");
        assert!(detail(&notices).contains("add up to the 220 bytes"));
    }

    #[test]
    fn a_cut_list_still_counts() {
        let mut decomposer = three_plugs(1);
        let (identification, _) = decompose(&mut decomposer, [141, 141], &[(0, 0.5), (1, 0.5)]);
        assert_eq!((identification.candidate_count, identification.listed), (2, 1));
        assert!((identification.candidates[0].probability - 0.5).abs() < 1e-12);
        assert_eq!(decomposer.counters()[2], ("cut_lists", 1));
    }

    #[test]
    fn a_range_of_sizes_is_searched_whole() {
        let (identification, _) = decompose(&mut three_plugs(10), [96, 111], &[(0, 1.0)]);
        assert_eq!(listed(&identification), [([1, 0], 0, 0.5), ([0, 1], 0, 0.5)]);
        let (identification, _) = decompose(&mut three_plugs(10), [140, 142], &[(0, 0.75), (1, 0.25)]);
        assert_eq!(identification.candidate_count, 3, "a multiset that several sizes explain is one candidate");
        let total: f64 = identification.candidates.iter().map(|candidate| candidate.probability).sum();
        assert!((total - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_message_of_the_overhead_alone_is_no_command() {
        assert_eq!(decompose(&mut three_plugs(10), [60, 60], &[(0, 1.0)]).0.candidate_count, 0);
    }

    #[test]
    fn without_inventory_the_list_is_cut_and_the_count_is_not() {
        let mut decomposer = Decomposer::new(model(&[("on", 2), ("off", 1)], None), 1000).unwrap();
        let (identification, _) = decompose(&mut decomposer, [8060, 8060], &[(0, 1.0)]);
        assert_eq!((identification.candidate_count, identification.listed), (4001, 1000));
        assert!((identification.candidates[999].probability - 1.0 / 4001.0).abs() < 1e-12);
    }

    #[test]
    fn a_list_fits_its_frame() {
        let names: Vec<String> = (0..8).map(|at| format!("{at}{}", "x".repeat(2000))).collect();
        let actions: Vec<(&str, i64)> = names.iter().map(String::as_str).zip(1..).collect();
        let mut decomposer = Decomposer::new(model(&actions, None), 1_000_000).unwrap();
        let (identification, _) = decompose(&mut decomposer, [200, 200], &[(0, 1.0)]);
        assert!(identification.listed > 500 && identification.candidate_count > identification.listed);
        FrameWriter::new(std::io::sink()).write(&identification.into()).unwrap();
    }

    #[test]
    fn hostile_sizes_are_unexplained() {
        let mut free = Decomposer::new(model(&[("on", 40), ("off", 41)], None), 10).unwrap();
        for range in [[u64::MAX; 2], [0, u64::MAX], [u64::MAX, 0]] {
            let epsilons = [(i64::MIN, 0.5), (i64::MAX, 0.5)];
            let (identification, notices) = decompose(&mut three_plugs(10), range, &epsilons);
            assert_eq!((identification.candidate_count, notices.len()), (0, 1));
            let (identification, notices) = decompose(&mut free, range, &epsilons);
            assert_eq!((identification.candidate_count, notices.len()), (0, 1));
        }
        let (_, notices) = decompose(&mut free, [1 << 40; 2], &[(0, 1.0)]);
        assert!(detail(&notices).contains("256 MiB"), "{notices:?}");
        let (identification, _) = decompose(&mut free, [141, 141], &[(0, 1.0)]);
        assert_eq!(identification.candidate_count, 1, "the run goes on");
        let (_, notices) = decompose(&mut free, [141, 141], &[(0, f64::NAN)]);
        assert_eq!(notices.len(), 1);
    }
}
