//! How good identifications are: the figures of the paper's table and others, out of judged commands.

use serde::Serialize;

use super::calibration::Calibration;
use super::information::Information;
use super::judge::{Judgement, TruthRank};

/// A labelled command, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::command) struct Judged<'a> {
    /// Its true actions, in the order of the labels' actions.
    pub(in crate::command) truth: &'a [u32],
    /// What was said of it; `None` where no command was found.
    pub(in crate::command) judgement: Option<&'a Judgement>,
}

/// What is said of all labelled commands together. All shares are of these, found or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::command) struct Score {
    /// Labelled commands.
    pub(in crate::command) commands: u64,
    /// Those with the true actions among their candidates.
    pub(in crate::command) among: u64,
    /// The paper's precision: their share.
    pub(in crate::command) precision: f64,
    /// Those of which a cut list does not tell whether the truth is among the candidates; not counted as found.
    pub(in crate::command) undecided: u64,
    /// Those with exactly one candidate.
    pub(in crate::command) unique: u64,
    /// Those whose only candidate is the truth.
    pub(in crate::command) unique_correct: u64,
    /// Those whose most probable candidate is the truth.
    pub(in crate::command) top_1: u64,
    /// Those with the truth among the five most probable candidates.
    pub(in crate::command) top_5: u64,
    /// Those with a command, but without any candidate.
    pub(in crate::command) unexplained: u64,
    /// Those with a list that was cut.
    pub(in crate::command) cut_lists: u64,
    /// How many candidates the commands that were found have.
    pub(in crate::command) candidates: Candidates,
    pub(in crate::command) credible_set: CredibleSet,
    pub(in crate::command) calibration: Calibration,
    pub(in crate::command) information: Information,
}

/// The fewest candidates, most probable first, that hold some probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::command) struct CredibleSet {
    /// Labelled commands with the truth in it.
    pub(in crate::command) among: u64,
    /// Their share.
    pub(in crate::command) coverage: f64,
    /// How many candidates it holds; of a list cut before its end, how many there are in all.
    pub(in crate::command) size: Candidates,
}

/// Numbers of candidates; all 0 where no command was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(in crate::command) struct Candidates {
    pub(in crate::command) mean: f64,
    /// Of an even number of commands, the mean of the two in the middle.
    pub(in crate::command) median: f64,
    pub(in crate::command) max: u64,
}

/// What is said of one action.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::command) struct ActionScore {
    /// The action.
    pub(in crate::command) action: String,
    /// Labelled commands with it.
    pub(in crate::command) commands: u64,
    /// Those with the true actions among their candidates.
    pub(in crate::command) among: u64,
    /// Their share; null without commands.
    pub(in crate::command) precision: Option<f64>,
    /// How often it truly occurs.
    pub(in crate::command) count: u64,
    /// How often it occurs in the most probable candidates.
    pub(in crate::command) top_1_count: u64,
    /// Of its true occurrences, the share that the most probable candidates have; null without any.
    pub(in crate::command) top_1_recall: Option<f64>,
    /// Of its occurrences in the most probable candidates, the share that is true; null without any.
    pub(in crate::command) top_1_precision: Option<f64>,
}

impl Score {
    /// Of all labelled commands; `prior_bits` is the entropy of what is known of a command without its size.
    pub(in crate::command) fn of(all: &[Judged<'_>], prior_bits: Option<f64>) -> Self {
        let found = || all.iter().filter_map(|judged| judged.judgement);
        let count =
            |is_counted: &dyn Fn(&Judgement) -> bool| found().filter(|judgement| is_counted(judgement)).count() as u64;
        let (commands, among) = (all.len() as u64, count(&|judgement| judgement.standing.is_among()));
        Self {
            commands,
            among,
            precision: share(among, commands).unwrap_or(0.0),
            undecided: count(&|judgement| judgement.standing == TruthRank::Undecided),
            unique: count(&|judgement| judgement.candidates == 1),
            unique_correct: count(&|judgement| judgement.candidates == 1 && judgement.standing.is_among()),
            top_1: count(&|judgement| judgement.standing == TruthRank::Listed(1)),
            top_5: count(&|judgement| judgement.standing.place().is_some_and(|place| place <= 5)),
            unexplained: count(&|judgement| judgement.candidates == 0),
            cut_lists: count(&|judgement| judgement.is_cut),
            candidates: Candidates::of(found().map(|judgement| judgement.candidates)),
            credible_set: CredibleSet::of(all),
            calibration: Calibration::of(found().filter_map(|judgement| {
                judgement.belief.first.map(|probability| (probability, judgement.standing == TruthRank::Listed(1)))
            })),
            information: Information::of(all, prior_bits),
        }
    }
}

impl CredibleSet {
    fn of(all: &[Judged<'_>]) -> Self {
        let found = || all.iter().filter_map(|judged| judged.judgement);
        let among = found().filter(|judgement| judgement.is_credible()).count() as u64;
        Self {
            among,
            coverage: share(among, all.len() as u64).unwrap_or(0.0),
            size: Candidates::of(found().map(|judgement| judgement.belief.credible)),
        }
    }
}

impl Candidates {
    fn of(counts: impl Iterator<Item = u64>) -> Self {
        let counts: Vec<u64> = counts.collect();
        let sum: f64 = counts.iter().map(|count| *count as f64).sum();
        let (mean, max) = (sum / counts.len().max(1) as f64, counts.iter().max().copied().unwrap_or(0));
        Self { mean, median: median(counts).unwrap_or(0.0), max }
    }
}

/// The count in the middle; of an even number of them, the mean of the two there.
pub(in crate::command) fn median(mut counts: Vec<u64>) -> Option<f64> {
    let half = counts.len() / 2;
    let is_even = counts.len().is_multiple_of(2);
    let (below, middle, _) = (half < counts.len()).then(|| counts.select_nth_unstable(half))?;
    let middle = *middle as f64;
    Some(below.iter().max().filter(|_| is_even).map_or(middle, |below| f64::midpoint(*below as f64, middle)))
}

impl ActionScore {
    /// The score of each action, in the order given.
    pub(in crate::command) fn of_each(actions: &[String], all: &[Judged<'_>]) -> Vec<Self> {
        actions.iter().enumerate().map(|(at, action)| Self::of(at, action, all)).collect()
    }

    fn of(at: usize, action: &str, all: &[Judged<'_>]) -> Self {
        let (mut commands, mut among, mut count, mut top_1_count, mut agreed) = (0, 0, 0, 0, 0);
        for judged in all {
            let truly = judged.truth.get(at).copied().unwrap_or(0);
            let first = judged.judgement.and_then(|judgement| judgement.first.as_ref());
            let said = first.and_then(|first| first.get(at)).copied().unwrap_or(0);
            let is_among = judged.judgement.is_some_and(|judgement| judgement.standing.is_among());
            commands += u64::from(truly > 0);
            among += u64::from(truly > 0 && is_among);
            count += u64::from(truly);
            top_1_count += u64::from(said);
            agreed += u64::from(truly.min(said));
        }
        Self {
            action: action.to_owned(),
            commands,
            among,
            precision: share(among, commands),
            count,
            top_1_count,
            top_1_recall: share(agreed, count),
            top_1_precision: share(agreed, top_1_count),
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::super::belief::Belief;
    use super::*;

    /// Of which the first candidate has the probability 0.5, and two are credible.
    fn judgement(standing: TruthRank, candidates: u64, first: &[u32]) -> Judgement {
        let belief = Belief { first: Some(0.5), entropy_bits: 1.0, credible: 2, is_credible_listed: true };
        let is_cut = standing == TruthRank::Undecided;
        Judgement { standing, candidates, is_cut, first: Some(first.to_vec()), belief }
    }

    #[test]
    fn every_labelled_command_counts() {
        let said = [
            judgement(TruthRank::Listed(1), 1, &[1, 0]),
            judgement(TruthRank::Listed(2), 4, &[0, 2]),
            judgement(TruthRank::Absent, 1, &[0, 1]),
            judgement(TruthRank::Undecided, 90, &[3, 0]),
            Judgement {
                standing: TruthRank::Absent,
                candidates: 0,
                is_cut: false,
                first: None,
                belief: Belief::default(),
            },
        ];
        let truths = [[1, 0], [1, 1], [2, 0], [1, 1], [0, 1]];
        let mut all: Vec<Judged<'_>> =
            truths.iter().zip(&said).map(|(truth, judgement)| Judged { truth, judgement: Some(judgement) }).collect();
        all.push(Judged { truth: &[0, 1], judgement: None });

        let score = Score::of(&all, Some(5.0));
        assert_eq!((score.commands, score.among, score.undecided, score.unexplained), (6, 2, 1, 1));
        assert_eq!((score.unique, score.unique_correct, score.top_1, score.cut_lists), (2, 1, 1, 1));
        assert!((score.precision - 2.0 / 6.0).abs() < 1e-12);
        assert_eq!(score.candidates, Candidates { mean: 96.0 / 5.0, median: 1.0, max: 90 });
        assert_eq!((score.top_5, score.credible_set.among, score.credible_set.size.max), (2, 2, 2));
        // Four answers given with 0.5, one of them right.
        assert_eq!((score.calibration.expected_error, score.calibration.bins.len()), (Some(0.25), 1));
        // 1 bit is left of four commands, all 5 of the other two.
        assert_eq!(score.information.leaked_bits, Some(5.0 - 14.0 / 6.0));

        let actions = ActionScore::of_each(&["on".into(), "off".into()], &all);
        let on = &actions[0];
        assert_eq!((on.commands, on.among, on.count, on.top_1_count), (4, 2, 5, 4));
        // Agreed: 1 of the first command, 0, 0, 1 of the fourth.
        assert_eq!((on.top_1_recall, on.top_1_precision), (Some(2.0 / 5.0), Some(2.0 / 4.0)));
        assert_eq!((actions[1].commands, actions[1].precision), (4, Some(1.0 / 4.0)));
    }

    #[test]
    fn medians_and_nothing() {
        let said = [3, 8, 1, 4].map(|candidates| judgement(TruthRank::Listed(1), candidates, &[]));
        let all: Vec<Judged<'_>> = said.iter().map(|said| Judged { truth: &[], judgement: Some(said) }).collect();
        assert_eq!(Score::of(&all, None).candidates, Candidates { mean: 4.0, median: 3.5, max: 8 });
        let none = Score::of(&[], None);
        assert_eq!((none.commands, none.precision, none.candidates), (0, 0.0, Candidates::default()));
        assert_eq!(ActionScore::of_each(&["on".into()], &[])[0].precision, None);
    }
}
