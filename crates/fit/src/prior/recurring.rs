//! Which commands recur more often than habits explain.

use std::collections::BTreeMap;

use sizeleak_model::{LabelledCommand, RecurringCommand};
use statrs::distribution::{DiscreteCDF, Poisson};

/// The fewest occurrences of a command that recurs: twice may be one command that somebody repeated.
const MIN_TIMES: u64 = 3;

/// How many commands are taken for recurring ones by chance in a model: the error rate of all tests (Bonferroni).
const FALSE_ALARMS: f64 = 0.01;

/// The commands that occur more often than by chance, the most frequent first. `probability`: of actions by habit.
pub(super) fn recurring_commands(
    commands: &[&LabelledCommand],
    probability: impl Fn(&[u32]) -> f64,
) -> Vec<RecurringCommand> {
    let mut times: BTreeMap<&[u32], u64> = BTreeMap::new();
    for command in commands {
        *times.entry(&command.counts).or_default() += 1;
    }
    let (all, tested) = (commands.len() as f64, times.len().max(1) as f64);
    let found = times.into_iter().filter_map(|(counts, times)| {
        let expected = all * probability(counts);
        let is_recurring = times >= MIN_TIMES && poisson_tail(times, expected) < FALSE_ALARMS / tested;
        // One further command may be any other.
        let share = (times as f64 - expected) / (all + 1.0);
        is_recurring.then(|| RecurringCommand { counts: counts.to_vec(), share: (share * 1e6).floor() / 1e6 })
    });
    let mut found: Vec<RecurringCommand> = found.filter(|command| command.share > 0.0).collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.counts.cmp(&b.counts)));
    found.truncate(RecurringCommand::MAX_LISTED);
    found
}

/// P(at least `times` events) where `expected` are; 0 of what never happens.
fn poisson_tail(times: u64, expected: f64) -> f64 {
    Poisson::new(expected).map_or(0.0, |events| events.sf(times - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(counts: &[(&[u32], usize)]) -> Vec<LabelledCommand> {
        let command = |counts: &[u32]| LabelledCommand {
            sizes: [100, 100],
            counts: counts.to_vec(),
            replies: 0,
            reply_bytes: 0,
            single_replies: None,
            has_own_replies: true,
        };
        counts.iter().flat_map(|(counts, times)| (0..*times).map(move |_| command(counts))).collect()
    }

    #[test]
    fn tail_is_that_of_the_poisson_distribution() {
        // 1 − e⁻¹ (1 + 1 + 1/2) and 1 − e^−0.1.
        assert!((poisson_tail(3, 1.0) - 0.080_301_397).abs() < 1e-9);
        assert!((poisson_tail(1, 0.1) - 0.095_162_582).abs() < 1e-9);
        assert!(poisson_tail(2, 5.0) > 0.9 && poisson_tail(1, 0.0) == 0.0);
        assert!(poisson_tail(1_000, 10.0) < 1e-300);
    }

    #[test]
    fn commands_labelled_more_often_than_by_chance_recur() {
        let all = commands(&[(&[1, 0], 40), (&[0, 1], 40), (&[3, 2], 18), (&[1, 1], 2)]);
        let all: Vec<&LabelledCommand> = all.iter().collect();
        let found = recurring_commands(&all, |counts| if counts.iter().sum::<u32>() == 1 { 0.4 } else { 0.02 });
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].counts, [3, 2]);
        assert!((found[0].share - 16.0 / 101.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn twice_is_not_often_however_improbable_it_is() {
        let all = commands(&[(&[1, 0], 2), (&[7, 7], 2)]);
        let all: Vec<&LabelledCommand> = all.iter().collect();
        assert_eq!(recurring_commands(&all, |_| 1e-12), []);
    }
}
