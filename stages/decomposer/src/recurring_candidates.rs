//! Commands that recur, beside the sums of a decomposition: their probability does not follow from habit.

use std::collections::BTreeMap;
use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, SharedList};
use sizeleak_model::{Action, Limits, Prior, RecurringCommand};

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
}

#[derive(Debug)]
struct Recurring {
    actions: Actions,
    /// The sums of the sizes of its actions in bytes, with their probabilities.
    sums: BTreeMap<i64, f64>,
    share: f64,
}

impl RecurringCandidates {
    /// `None` if no command recurs that the limits allow.
    pub(crate) fn new(
        prior: &Prior,
        actions: &[Action],
        limits: &Limits,
        names: &SharedList<Arc<str>>,
    ) -> Option<Self> {
        let total = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
        let is_allowed = |counts: &[u32]| limits.admits(counts) && total(counts) <= MAX_ACTIONS;
        let allowed = prior.recurring.iter().filter(|command| is_allowed(&command.counts));
        let of_command = |RecurringCommand { counts, share }: &RecurringCommand| {
            let occurring = (0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0);
            let occurring: Vec<(u32, u32)> = occurring.collect();
            let end = u32::try_from(occurring.len()).unwrap_or(u32::MAX);
            let of_command = Actions::of_many(names.clone(), occurring, [end]).next().unwrap_or_default();
            Recurring { actions: of_command, sums: sums_of(actions, counts), share: *share }
        };
        let commands: Vec<Recurring> = allowed.map(of_command).collect();
        let share = commands.iter().map(|command| command.share).sum();
        (!commands.is_empty()).then_some(Self { commands, share })
    }

    /// The candidates listed by habit, with those that recur, best first, and the probability of the size, which was
    /// `size_probability` by habit alone. `sums` are what the command's actions may add up to; their weights are
    /// multiples of `heaviest`.
    pub(crate) fn join(
        &self,
        listed: &[Candidate],
        size_probability: f64,
        sums: &[TargetSum],
        heaviest: f64,
    ) -> (Vec<Candidate>, f64) {
        let mut candidates = listed.to_vec();
        let by_habit = (1.0 - self.share) * size_probability;
        for candidate in &mut candidates {
            candidate.probability *= by_habit;
        }
        let mut all = by_habit;
        for command in &self.commands {
            let explained =
                sums.iter().filter_map(|sum| Some((command.sums.get(&sum.bytes)? * sum.weight, sum.epsilon)));
            let (mut probability, mut epsilon) = (0.0, (0.0, 0));
            for (weight, of_sum) in explained {
                probability += command.share * weight * heaviest;
                epsilon = if weight > epsilon.0 { (weight, of_sum) } else { epsilon };
            }
            if probability <= 0.0 {
                continue;
            }
            all += probability;
            if let Some(listed) = candidates.iter_mut().find(|candidate| candidate.actions == command.actions) {
                listed.probability += probability;
            } else {
                candidates.push(Candidate { actions: command.actions.clone(), epsilon: epsilon.1, probability });
            }
        }
        if all > 0.0 {
            for candidate in &mut candidates {
                candidate.probability /= all;
            }
        }
        // Equal ones stay in their order.
        candidates.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        (candidates, all.min(1.0))
    }
}

/// The sums of so many of each action, with their probabilities.
fn sums_of(actions: &[Action], counts: &[u32]) -> BTreeMap<i64, f64> {
    let mut sums: BTreeMap<i64, f64> = BTreeMap::from([(0, 1.0)]);
    for (action, count) in actions.iter().zip(counts) {
        for _ in 0..*count {
            let mut longer: BTreeMap<i64, f64> = BTreeMap::new();
            for (size, share) in action.sizes() {
                for (sum, probability) in &sums {
                    *longer.entry(sum.saturating_add(size)).or_default() += probability * share;
                }
            }
            longer.retain(|_, probability| *probability > MIN_PROBABILITY);
            sums = longer;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Command, Correction, Frame, WeightedEpsilon};
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
}
