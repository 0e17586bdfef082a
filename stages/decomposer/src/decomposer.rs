//! The stage: commands with values of ε in, commands with candidates out.

use std::sync::Arc;

use sizeleak_frame::{Candidate, Command, Correction, Identification, Notice, SharedList, WeightedEpsilon, what};
use sizeleak_model::Model;
use sizeleak_runtime::{Emit, Stage, StageError};

use crate::answers::{Answer, Answers, Unexplained};
use crate::count::{Solver, SolverError, SumTooLarge, sizes};
use crate::list::{List, MOST_LISTED};
use crate::ranked::Ranked;
use crate::ranking::Ranking;
use crate::sums::{Sum, Sums, sums};
use crate::whole::Whole;

/// Lists the multisets of actions that explain each command.
#[derive(Debug)]
pub struct Decomposer {
    model: Model,
    names: SharedList<Arc<str>>,
    solver: Solver,
    /// What ways are compared by; the first that has room for a command's sums. None where the prior is flat.
    rankings: Vec<Ranking>,
    limit: usize,
    answers: Answers,
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
        let limits = model.limits()?;
        let solver = Solver::new(&model.actions, &limits)?;
        let sizes = sizes(&model.actions)?;
        let ranked = model
            .prior
            .iter()
            .flat_map(|prior| [Ranking::counted(&sizes, &limits, prior), Ranking::geometric(&sizes, &limits, prior)]);
        let rankings = ranked.flatten().collect();
        let names = model.actions.iter().map(|action| Arc::from(action.name.as_str())).collect();
        Ok(Self { model, names, solver, rankings, limit, answers: Answers::default(), counts: Counts::default() })
    }

    /// What explains a command: remembered from the same question before, or worked out.
    fn answer(&mut self, sizes: [i64; 2], epsilons: &SharedList<WeightedEpsilon>) -> Result<Answer, StageError> {
        if let Some(answer) = self.answers.recall(sizes, epsilons) {
            return Ok(answer);
        }
        let answer = self.work_out(sizes, epsilons)?;
        self.answers.remember(sizes, epsilons.clone(), answer.clone());
        Ok(answer)
    }

    fn work_out(&mut self, sizes: [i64; 2], epsilons: &[WeightedEpsilon]) -> Result<Answer, StageError> {
        let [least, most] = sizes;
        let unexplained = |detail: String, is_too_large, unused_epsilons| Answer {
            candidates: SharedList::default(),
            candidate_count: 0,
            unused_epsilons,
            unexplained: Some(Unexplained { detail: detail.into(), is_too_large }),
        };
        let Some(Sums { sums, unused }) = sums(sizes, self.model.overhead, epsilons) else {
            let detail = format!("a message of {least} to {most} bytes is none that a cipher leaves: not taken apart");
            return Ok(unexplained(detail, false, 0));
        };
        let explained = match self.count(sums) {
            Ok(explained) => explained,
            Err(error) => return Ok(unexplained(error.to_string(), true, unused)),
        };
        if explained.is_empty() {
            let size = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            let cause = "another kind of message, or another gateway";
            let detail = format!("no actions add up to the {size} bytes of this message: {cause}");
            return Ok(unexplained(detail, false, unused));
        }
        let candidates = self.candidates(&explained).map_err(StageError::failed)?;
        let candidate_count = explained.iter().fold(0, |total: u64, explained| total.saturating_add(explained.count));
        Ok(Answer { candidates, candidate_count, unused_epsilons: unused, unexplained: None })
    }

    /// The sums that some multisets of actions have, heaviest first.
    fn count(&mut self, sums: Vec<Sum>) -> Result<Vec<Explained>, SumTooLarge> {
        let counted = sums.into_iter().map(|sum| Ok(Explained { sum, count: self.solver.count(sum.bytes)? }));
        counted.filter(|explained| !matches!(explained, Ok(Explained { count: 0, .. }))).collect()
    }

    /// The candidates of these sums, as many as are listed, with their probabilities among all, listed or not.
    fn candidates(&mut self, explained: &[Explained]) -> Result<SharedList<Candidate>, SumTooLarge> {
        if let Some(candidates) = self.ranked(explained) {
            return Ok(candidates);
        }
        // Before its size is seen, every multiset of actions is as likely as any other; so a candidate's probability is
        // what speaks for its sum, among what speaks for the sums of all candidates.
        let total: f64 = explained.iter().map(|explained| explained.sum.weight * explained.count as f64).sum();
        let mut list = List::new(&self.names, self.limit);
        for Explained { sum, .. } in explained {
            let mut solutions = self.solver.solutions(sum.bytes)?;
            while list.has_room()
                && let Some(counts) = solutions.advance()
            {
                let occurring = (0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0);
                list.push(occurring, sum.epsilon, sum.weight / total);
            }
        }
        Ok(list.into_candidates())
    }

    /// The candidates by the prior, most probable first; `None` where there is no prior, or no room to weigh by it.
    fn ranked(&mut self, explained: &[Explained]) -> Option<SharedList<Candidate>> {
        let bytes = |explained: &Explained| usize::try_from(explained.sum.bytes).ok();
        let largest = explained.iter().map(bytes).max().flatten()?;
        let ranking = self.rankings.iter_mut().find_map(|ranking| ranking.prepare(largest).then_some(&*ranking))?;
        let sums = explained.iter().map(|explained| Some((bytes(explained)?, explained.sum.weight.ln())));
        let sums: Vec<(usize, f64)> = sums.collect::<Option<_>>()?;
        let ln_total = ln_sum(sums.iter().map(|(bytes, weight)| weight + ranking.ln_mass(*bytes)));
        if !ln_total.is_finite() {
            return None;
        }
        let mut list = List::new(&self.names, self.limit);
        let most = self.limit.min(MOST_LISTED);
        let probability = |ln: f64| (ln - ln_total).exp().min(1.0);
        let count = explained.iter().fold(0, |total: u64, explained| total.saturating_add(explained.count));
        if Whole::pays(count, most)
            && let Some(whole) = Whole::of(ranking, &sums, usize::try_from(count).unwrap_or(most))
        {
            let (found, actions) = whole.size();
            list.reserve(found, actions);
            let mut ways = whole.ways().take(most);
            while list.has_room()
                && let Some((sum, actions, ln)) = ways.next()
            {
                list.push(actions.iter().copied(), explained.get(sum)?.sum.epsilon, probability(ln));
            }
            return Some(list.into_candidates());
        }
        let mut ways = Ranked::new(ranking, &sums, most);
        while list.has_room()
            && let Some(mut way) = ways.next()
        {
            way.actions.sort_unstable();
            let epsilon = explained.get(way.sum)?.sum.epsilon;
            let actions = way.actions.into_iter().map(|(action, count)| (action as u32, count));
            list.push(actions, epsilon, probability(way.ln));
        }
        Some(list.into_candidates())
    }

    fn tell_unexplained(
        &mut self,
        command: &Command,
        unexplained: &Unexplained,
        out: &mut dyn Emit,
    ) -> Result<(), StageError> {
        self.counts.unexplained += 1;
        self.counts.too_large += u64::from(unexplained.is_too_large);
        let notice = Notice {
            time_ns: Some(command.time_ns),
            stage: Self::NAME.into(),
            flow: Some(command.flow),
            what: what::UNEXPLAINED.into(),
            bytes: Some(command.size),
            detail: Some(unexplained.detail.as_ref().to_owned()),
        };
        Ok(out.emit(notice.into())?)
    }
}

impl Stage for Decomposer {
    const NAME: &'static str = "decomposer";
    type Input = Correction;

    fn process(&mut self, Correction { command, epsilons }: Correction, out: &mut dyn Emit) -> Result<(), StageError> {
        let sizes = self.model.sizes(command.size, command.records, command.plaintext).map_err(StageError::failed)?;
        let Answer { candidates, candidate_count, unused_epsilons, unexplained } = self.answer(sizes, &epsilons)?;
        self.counts.unused_epsilons += unused_epsilons;
        if let Some(unexplained) = unexplained {
            self.tell_unexplained(&command, &unexplained, out)?;
        }
        let listed = candidates.len() as u64;
        self.counts.cut_lists += u64::from(listed < candidate_count);
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

/// ln Σ exp(x).
fn ln_sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let greatest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if greatest.is_finite() { greatest + terms.map(|term| (term - greatest).exp()).sum::<f64>().ln() } else { greatest }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Actions, Frame, FrameWriter};

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
        (*identification, out)
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

    /// Commands of one action nine times in ten; `on` three times as often as `off`.
    const HABITS: &str = "[prior]\nnumbers = [0.9, 0.09]\ndecay = 0.1\nshares = [0.75, 0.25]\nconcentration = 1e9\n";

    #[test]
    fn the_most_probable_come_first_whatever_their_epsilon() {
        let mut model = model(&[("on", 40), ("off", 41)], None);
        let habits = Model::from_toml(&format!("{}{HABITS}", model.to_toml())).unwrap();
        model.prior = habits.prior;
        for limit in [10, 1] {
            let mut decomposer = Decomposer::new(model.clone(), limit).unwrap();
            let (identification, _) = decompose(&mut decomposer, [142, 142], &[(0, 0.1), (1, 0.7), (42, 0.2)]);
            let listed = listed(&identification);
            // off·off: 0.1 · 1/16; on·off: 0.7 · 6/16, both times P(2) = 0.09; on alone: 0.2 · 3/4 · 0.9.
            let weights = [0.2 * 0.75 * 0.9, 0.7 * 0.375 * 0.09, 0.1 * 0.0625 * 0.09];
            let expected = [[1, 0], [1, 1], [0, 2]].into_iter().zip([42, 1, 0]).zip(weights);
            assert_eq!((identification.candidate_count, listed.len()), (3, limit.min(3)));
            for ((counts, epsilon, probability), ((expected, of), weight)) in listed.iter().zip(expected) {
                assert_eq!((counts, *epsilon), (&expected, of));
                let among_all = weight / weights.iter().sum::<f64>();
                assert!((probability - among_all).abs() < 1e-9, "{probability} is not {among_all}, limit {limit}");
            }
        }
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
