//! Commands that recur, beside the sums of a decomposition: their probability does not follow from habit.

use std::sync::Arc;

use sizeleak_frame::{Actions, Candidate, SharedList};
use sizeleak_model::{Action, Limits, Multiples, Pmf, Prior, RecurringCommand};

use crate::decomposition::{FoundCandidates, TargetSum};

/// Less probable sums are left out.
const MIN_PROBABILITY: f64 = 1e-12;

/// A command of more actions is not taken for one that recurs.
const MAX_ACTIONS: u64 = 4096;

/// The commands of a prior that recur, as candidates have them.
#[derive(Debug)]
pub(crate) struct RecurringCandidates {
    commands: Vec<Recurring>,
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
