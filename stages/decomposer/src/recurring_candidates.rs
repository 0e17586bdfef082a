//! Commands that recur, beside the sums of a decomposition: their probability does not follow from habit.

use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, SharedList};
use sizeleak_model::{Action, Limits, Multiples, Pmf, Prior, RecurringCommand};

use crate::decomposition::FoundCandidates;
use crate::target_sums::TargetSum;

/// Less probable sums are left out.
const MIN_PROBABILITY: f64 = 1e-12;

/// A command of more actions is not taken for one that recurs.
const MAX_ACTIONS: u64 = 4096;

/// The commands of a prior that recur, as candidates have them.
#[derive(Debug)]
pub(crate) struct RecurringCandidates {
    commands: Vec<Recurring>,
    /// Their share of all commands.
    share: f64,
    limit: usize,
}

#[derive(Debug)]
struct Recurring {
    actions: Actions,
    /// The sums of the sizes of its actions in bytes, with their probabilities.
    sums: Pmf,
    share: f64,
}

impl RecurringCandidates {
    /// The share of commands that do not recur, by the learned habits.
    pub(crate) fn not_recurring(&self) -> f64 {
        1.0 - self.share
    }

    /// `None` if no command recurs that the limits allow.
    pub(crate) fn new(
        prior: &Prior,
        actions: &[Action],
        limits: &Limits,
        names: &SharedList<Arc<str>>,
        limit: usize,
    ) -> Option<Self> {
        let total = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
        let allowed = prior.recurring_within(limits).filter(|command| total(&command.counts) <= MAX_ACTIONS);
        let of_command = |RecurringCommand { counts, share }: &RecurringCommand| {
            let occurring = (0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0);
            let occurring: Vec<(u32, u32)> = occurring.collect();
            let end = u32::try_from(occurring.len()).unwrap_or(u32::MAX);
            let of_command = Actions::of_many(names.clone(), occurring, [end]).next().unwrap_or_default();
            let each = actions.iter().zip(counts).filter(|(_, count)| **count > 0);
            let sums = each.fold(Pmf::certain(0), |sums, (action, count)| {
                sums.convolve(Multiples::new(Pmf::from_values(action.sizes())).sum_of(*count)).trimmed()
            });
            Recurring { actions: of_command, sums, share: *share }
        };
        let commands: Vec<Recurring> = allowed.map(of_command).collect();
        let share = commands.iter().map(|command| command.share).sum();
        (!commands.is_empty()).then_some(Self { commands, share, limit })
    }

    /// The candidates by habit with those that recur, best first. Commands recur as far as the learned habits hold, of
    /// which `learned` is the probability; the candidates by habit have the part `others` of theirs. `sums` are what the command's actions may add up to; their weights are
    /// multiples of `heaviest`. `of_replies` is P(replies | actions), where replies chose what is listed.
    pub(crate) fn join(
        &self,
        by_habit: &FoundCandidates,
        [learned, others]: [f64; 2],
        (sums, heaviest): (&[TargetSum], f64),
        of_replies: impl Fn(&Actions) -> f64,
    ) -> FoundCandidates {
        let Some(size_probability) = by_habit.probability else { return by_habit.clone() };
        let others = others * size_probability;
        let mut candidates: Vec<Candidate> = by_habit.listed.to_vec();
        for candidate in &mut candidates {
            candidate.probability *= others;
        }
        // P(size, actions, replies).
        let all_replies = by_habit.reply_probability.map(|probability| others * probability);
        let joint = |own: &f64| own * all_replies.unwrap_or(1.0);
        let mut with_replies: Option<Vec<f64>> =
            by_habit.with_replies.as_ref().map(|listed| listed.iter().map(joint).collect());
        let (mut all, mut all_replies) = (others, all_replies);
        for command in &self.commands {
            let possible = sums.iter().map(|sum| (command.sums.at(sum.bytes), sum));
            let possible = possible.filter(|(probability, _)| *probability > MIN_PROBABILITY);
            let explained = possible.map(|(probability, sum)| (probability * sum.weight, sum.epsilon));
            let (mut probability, mut likelihood, mut epsilon) = (0.0, 0.0, (0.0, 0));
            for (weight, of_sum) in explained {
                likelihood += weight;
                probability += learned * command.share * weight * heaviest;
                epsilon = if weight > epsilon.0 { (weight, of_sum) } else { epsilon };
            }
            if probability <= 0.0 {
                continue;
            }
            all += probability;
            let at = candidates.iter().position(|candidate| candidate.actions == command.actions);
            let at = at.unwrap_or_else(|| {
                let (actions, likelihood) = (command.actions.clone(), Some(likelihood));
                candidates.push(Candidate { actions, epsilon: epsilon.1, probability: 0.0, likelihood });
                candidates.len() - 1
            });
            candidates[at].probability += probability;
            if let (Some(with_replies), Some(all_replies)) = (&mut with_replies, &mut all_replies) {
                let joint = probability * of_replies(&command.actions);
                with_replies.resize(candidates.len(), 0.0);
                with_replies[at] += joint;
                *all_replies += joint;
            }
        }
        if all <= 0.0 {
            return by_habit.clone();
        }
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        // Equal ones stay in their order.
        order.sort_by(|a, b| candidates[*b].probability.total_cmp(&candidates[*a].probability));
        order.truncate(self.limit);
        let scaled =
            |at: &usize| Candidate { probability: candidates[*at].probability / all, ..candidates[*at].clone() };
        FoundCandidates {
            listed: order.iter().map(scaled).collect(),
            probability: Some(all.min(1.0)),
            reply_probability: all_replies.map(|joint| (joint / all).min(1.0)),
            with_replies: with_replies
                .zip(all_replies)
                .map(|(joint, all)| order.iter().map(|at| joint[*at] / all).collect()),
            count: by_habit.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Command, Correction, Frame, HabitFactors, WeightedEpsilon};
    use sizeleak_model::Model;
    use sizeleak_platform::runtime::Stage;

    use super::*;
    use crate::Decomposer;

    /// `on` and `off` of one device are as probable, but `on` twice recurs.
    fn model(recurring: &str) -> Model {
        let text = format!(
            "schema = 2\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
             [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 40\n\
             [[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
             [prior]\nnumbers = [0.5, 0.3, 0.2]\ndecay = 0.5\nshares = [0.5, 0.5]\nconcentration = 1e9\n{recurring}\
             [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
             [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n"
        );
        Model::from_toml(&text).unwrap()
    }

    fn candidates(model: Model, size: u64, limit: usize) -> (Vec<(String, f64)>, u64, f64) {
        let mut decomposer = Decomposer::new(model, limit).unwrap();
        let epsilons = [(0, 0.75), (1, 0.25)].map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight });
        let command = Command { time_ns: 1, end_ns: 2, flow: 3, size, records: 1, ..Command::default() };
        let mut out: Vec<Frame> = Vec::new();
        decomposer.process(Correction::unshifted(command, epsilons.into_iter().collect()), &mut out).unwrap();
        let [Frame::Identification(found)] = &out[..] else { panic!("{out:?}") };
        let text = |candidate: &Candidate| (format!("{:?}", candidate.actions), candidate.probability);
        (found.candidates.iter().map(text).collect(), found.candidate_count, found.size_probability.unwrap())
    }

    #[test]
    fn recurring_command_has_its_share_beside_habit() {
        let (by_habit, count, of_size) = candidates(model(""), 140, 10);
        assert_eq!((by_habit.len(), count), (3, 3));
        assert!((of_size - 0.3 * 0.75).abs() < 1e-9);
        let (found, count, of_size) = candidates(model("recurring = [{ counts = [2, 0], share = 0.1 }]\n"), 140, 10);
        assert_eq!(count, 3);
        let all = (0.9 * 0.3 + 0.1) * 0.75;
        assert!((of_size - all).abs() < 1e-9);
        assert_eq!(found[0].0, r#"{"on": 2}"#);
        assert!((found[0].1 - (0.9 * 0.3 * 0.25 + 0.1) * 0.75 / all).abs() < 1e-9, "{found:?}");
        assert!((found.iter().map(|one| one.1).sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn other_sizes_and_what_the_inventory_forbids_are_as_before() {
        let of_habit = candidates(model(""), 100, 10).0;
        let (found, _, of_size) = candidates(model("recurring = [{ counts = [2, 0], share = 0.1 }]\n"), 100, 10);
        assert_eq!(found, of_habit);
        assert!((of_size - 0.9 * 0.5 * 0.75).abs() < 1e-9);
        let beyond = "recurring = [{ counts = [4, 0], share = 0.1 }]\n";
        assert_eq!(candidates(model(beyond), 140, 10), candidates(model(""), 140, 10));
    }

    #[test]
    fn recurring_command_is_listed_where_the_list_is_cut() {
        let recurring = "recurring = [{ counts = [0, 3], share = 0.2 }]\n";
        let (found, count, _) = candidates(model(recurring), 180, 1);
        assert_eq!((found.len(), count, found[0].0.as_str()), (1, 4, r#"{"off": 3}"#));
        assert!(found[0].1 > 0.5);
    }

    #[test]
    fn recurring_commands_take_their_share_from_the_learned_habits_alone() {
        let text = "schema = 2\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
            [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 40\n\
            [[device]]\nname = \"plug\"\ncount = 1\nactions = [\"on\", \"off\"]\n\
            [prior]\nnumbers = [1.0]\ndecay = 0.5\nshares = [0.5, 0.5]\nconcentration = 1e9\n\
            recurring = [{ counts = [1, 0], share = 0.8 }]\n\
            [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
            [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n";
        let mut decomposer = Decomposer::new(Model::from_toml(text).unwrap(), 10).unwrap();
        let epsilons: SharedList<WeightedEpsilon> = [WeightedEpsilon { epsilon: 0, weight: 1.0 }].into_iter().collect();
        let command = Command { time_ns: 1, end_ns: 2, flow: 3, size: 100, records: 1, ..Command::default() };
        // Other habits are as probable, by which there is `off` alone.
        let habits = HabitFactors { weight: 0.5, actions: [0.0, 2.0].into(), numbers: [1.0].into() };
        let unshifted = Correction::unshifted(command, epsilons);
        let mut out: Vec<Frame> = Vec::new();
        decomposer.process(Correction { habits: [habits].into_iter().collect(), ..unshifted }, &mut out).unwrap();
        let [Frame::Identification(found)] = &out[..] else { panic!("{out:?}") };
        let probabilities: Vec<f64> = found.candidates.iter().map(|one| one.probability).collect();
        let (off, on) = (0.5 * 0.2 * 0.5 + 0.5, 0.5 * (0.2 * 0.5 + 0.8));
        assert!((probabilities[0] - off).abs() < 1e-9 && (probabilities[1] - on).abs() < 1e-9, "{probabilities:?}");
    }
}
