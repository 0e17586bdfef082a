//! How good identifications are: the figures of the paper's table and more, computed from judged labels. And how much is
//! given away, in bits: the uncertainty about a command before its size is seen, and after.

use serde::Serialize;
use sizeleak_inference::space::{CommandSpace, Home, Premises, PriorName};
use sizeleak_model::{Action, Kind, Model};
use sizeleak_pipeline::Pipeline;

use crate::calibration::Calibration;
use crate::judge::{JudgedLabel, Judgement, TruthRank};
use crate::statistics::{Confidence, Interval, median, wilson};

/// The figures over all labelled commands, found or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    pub commands: u64,
    /// Those with the true actions among their candidates.
    pub among: u64,
    /// The paper's precision: their share.
    pub precision: f64,
    /// Those whose truncated list does not show whether the truth is among the candidates; not counted as found.
    pub undecided: u64,
    /// Those with exactly one candidate.
    pub unique: u64,
    /// Those whose only candidate is the truth.
    pub unique_correct: u64,
    /// Those whose first candidate is the truth.
    pub top_1: u64,
    /// Those with the truth among the first five candidates.
    pub top_5: u64,
    /// Those with a command, but without any candidate.
    pub unexplained: u64,
    pub cut_lists: u64,
    pub candidates: CandidateCounts,
    pub credible_set: CredibleSet,
    pub calibration: Calibration,
    pub information: Information,
    pub intervals: ScoreIntervals,
}

/// Wilson's 95 % intervals of shares of the labelled commands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoreIntervals {
    pub precision: Interval,
    pub top_1: Interval,
    pub top_5: Interval,
    pub unique: Interval,
    pub unique_correct: Interval,
    pub coverage: Interval,
}

/// The fewest candidates, most probable first, that hold a given probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CredibleSet {
    /// Labelled commands with the truth in it.
    pub among: u64,
    /// Their share.
    pub coverage: f64,
    /// How many candidates it holds; if the list is truncated before its end, the number of all candidates.
    pub size: CandidateCounts,
}

/// Numbers of candidates; all 0 if no command was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CandidateCounts {
    pub mean: f64,
    /// The median; for an even number of commands, the mean of the middle two.
    pub median: f64,
    pub max: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActionScore {
    pub action: String,
    /// Labelled commands with it.
    pub commands: u64,
    /// Those with the true actions among their candidates.
    pub among: u64,
    /// Their share; null without commands.
    pub precision: Option<f64>,
    /// How often it truly occurs.
    pub count: u64,
    /// How often it occurs in first candidates.
    pub top_1_count: u64,
    /// The share of its true occurrences that first candidates contain; null without any.
    pub top_1_recall: Option<f64>,
    /// The share of its occurrences in first candidates that are true; null without any.
    pub top_1_precision: Option<f64>,
    pub intervals: ActionIntervals,
}

/// Wilson's 95 % intervals of an action's shares; 0 to 1 where there is no share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ActionIntervals {
    pub precision: Interval,
    pub top_1_recall: Interval,
    pub top_1_precision: Interval,
}

impl Score {
    /// The score of all labelled commands; `prior_bits` is the entropy of what is known of a command without its size.
    pub(crate) fn new(labels: &[JudgedLabel<'_>], prior_bits: Option<f64>) -> Self {
        let found = || labels.iter().filter_map(|label| label.judgement);
        let count =
            |is_counted: &dyn Fn(&Judgement) -> bool| found().filter(|judgement| is_counted(judgement)).count() as u64;
        let (commands, among) = (labels.len() as u64, count(&|judgement| judgement.rank.is_candidate()));
        let unique = count(&|judgement| judgement.candidates == 1);
        let unique_correct = count(&|judgement| judgement.candidates == 1 && judgement.rank.is_candidate());
        let top_1 = count(&|judgement| judgement.rank == TruthRank::Listed(1));
        let top_5 = count(&|judgement| judgement.rank.position().is_some_and(|position| position <= 5));
        let credible = count(&Judgement::is_credible);
        let interval = |part: u64| wilson(part, commands, Confidence::USUAL);
        Self {
            intervals: ScoreIntervals {
                precision: interval(among),
                top_1: interval(top_1),
                top_5: interval(top_5),
                unique: interval(unique),
                unique_correct: interval(unique_correct),
                coverage: interval(credible),
            },
            commands,
            among,
            precision: share(among, commands).unwrap_or(0.0),
            undecided: count(&|judgement| judgement.rank == TruthRank::Undecided),
            unique,
            unique_correct,
            top_1,
            top_5,
            unexplained: count(&|judgement| judgement.candidates == 0),
            cut_lists: count(&|judgement| judgement.is_truncated),
            candidates: CandidateCounts::new(found().map(|judgement| judgement.candidates)).unwrap_or_default(),
            credible_set: CredibleSet {
                among: credible,
                coverage: share(credible, commands).unwrap_or(0.0),
                size: CandidateCounts::new(found().map(|judgement| judgement.probabilities.credible_size))
                    .unwrap_or_default(),
            },
            calibration: Calibration::over(found()).with_missed(commands - found().count() as u64),
            information: Information::new(labels.iter().map(|label| label.judgement), prior_bits),
        }
    }
}

impl CandidateCounts {
    /// `None` without any.
    pub(crate) fn new(counts: impl Iterator<Item = u64>) -> Option<Self> {
        let counts: Vec<u64> = counts.collect();
        let values = || counts.iter().map(|count| *count as f64);
        let (mean, max) = (values().sum::<f64>() / counts.len().max(1) as f64, counts.iter().max().copied()?);
        Some(Self { mean, median: median(values())?, max })
    }
}

impl ActionScore {
    pub(crate) fn of_each(actions: &[String], labels: &[JudgedLabel<'_>]) -> Vec<Self> {
        actions.iter().enumerate().map(|(at, action)| Self::new(at, action, labels)).collect()
    }

    fn new(at: usize, action: &str, labels: &[JudgedLabel<'_>]) -> Self {
        let (mut commands, mut among, mut count, mut top_1_count, mut agreed) = (0, 0, 0, 0, 0);
        for label in labels {
            let truth = label.truth.get(at).copied().unwrap_or(0);
            let first = label.judgement.and_then(|judgement| judgement.first.as_ref());
            let answer = first.and_then(|first| first.get(at)).copied().unwrap_or(0);
            let is_among = label.judgement.is_some_and(|judgement| judgement.rank.is_candidate());
            commands += u64::from(truth > 0);
            among += u64::from(truth > 0 && is_among);
            count += u64::from(truth);
            top_1_count += u64::from(answer);
            agreed += u64::from(truth.min(answer));
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
            intervals: ActionIntervals {
                precision: wilson(among, commands, Confidence::USUAL),
                top_1_recall: wilson(agreed, count, Confidence::USUAL),
                top_1_precision: wilson(agreed, top_1_count, Confidence::USUAL),
            },
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Means over all labelled commands, as the model sees them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Information {
    /// The entropy without the size: by the prior that made the candidates' probabilities, or over all commands the
    /// inventory allows, each equally likely. Null if nothing bounds them.
    pub prior_bits: Option<f64>,
    /// The entropy of the candidates; for a command without candidates, that of the prior.
    pub posterior_bits: f64,
    /// Their difference.
    pub leaked_bits: Option<f64>,
    /// Whether truncated lists make `posterior_bits` an upper bound and `leaked_bits` a lower one.
    pub is_bound: bool,
}

impl Information {
    /// The information about labelled commands, found or not, given the entropy of the prior.
    pub(crate) fn new<'a>(labels: impl Iterator<Item = Option<&'a Judgement>>, prior_bits: Option<f64>) -> Self {
        let (mut sum, mut counted, mut is_bound) = (0.0, 0_u64, false);
        for judgement in labels {
            let known = judgement.filter(|judgement| judgement.candidates > 0);
            let bits = known.map(|judgement| judgement.probabilities.entropy_bits).or(prior_bits);
            let Some(bits) = bits else { continue };
            sum += bits;
            counted += 1;
            is_bound |= known.is_some_and(|judgement| judgement.is_truncated);
        }
        let posterior_bits = if counted > 0 { sum / counted as f64 } else { 0.0 };
        let leaked_bits = prior_bits.filter(|_| counted > 0).map(|prior| prior - posterior_bits);
        Self { prior_bits, posterior_bits, leaked_bits, is_bound }
    }
}

/// The entropy of what a pipeline knows of a command before its size is seen, in bits; `None` if nothing bounds it, if
/// there are too many combinations of devices, or where each of several sections of the model knows something else.
/// Commands of more actions than are counted are left out.
pub(crate) fn prior_bits(pipeline: &Pipeline, sections: &[Model]) -> Option<f64> {
    let [model] = sections else { return None };
    let option = |key| pipeline.option("decomposer", key);
    let wanted = option("prior").and_then(|name| name.clone().try_into().ok()).unwrap_or_default();
    let prior = if model.prior.is_some() { wanted } else { PriorName::Flat };
    let inventory = model.inventory.as_ref().filter(|_| option("free") != Some(&true.into()));
    let of_sums = || bits_of_sums(&Home { inventory, ..Home::from(model) }, prior);
    let Some(kinds) = &model.kinds else { return of_sums() };
    let times: Vec<u64> = kinds.list.iter().map(Kind::commands).collect();
    let of_kinds: u64 = times.iter().fold(0, |sum, times| sum.saturating_add(*times));
    let additive = model.learned.commands.saturating_sub(of_kinds);
    let all = of_kinds.saturating_add(additive).max(1) as f64;
    let bits = |times: u64| {
        let share = times as f64 / all;
        if share > 0.0 { -share * share.log2() } else { 0.0 }
    };
    let within_sums = if model.actions.is_empty() { 0.0 } else { additive as f64 / all * of_sums()? };
    Some(times.into_iter().map(bits).sum::<f64>() + bits(additive) + within_sums)
}

/// The entropy of the commands of a home: −Σ P(A) log₂ P(A).
fn bits_of_sums(home: &Home<'_>, prior: PriorName) -> Option<f64> {
    // How many bytes they have does not matter.
    let actions: Vec<Action> = home.actions.iter().map(|action| Action::new(action.name.clone(), 1)).collect();
    let home = Home { overhead: 0, actions: &actions, ..*home };
    let space = CommandSpace::new(home, &Premises { prior, decay: None }).ok()?;
    let all = 1.0 - space.left_out();
    let plogp: f64 = space.size_rows().ok()?.iter().map(|row| row.plogp).sum();
    Some((all.log2() - plogp / all).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{ProbabilitySummary, TruthRank};

    /// The first candidate has the probability 0.5, and two candidates are credible.
    fn judgement(rank: TruthRank, candidates: u64, first: &[u32]) -> Judgement {
        let probabilities =
            ProbabilitySummary { first: Some(0.5), entropy_bits: 1.0, credible_size: 2, is_credible_listed: true };
        let is_truncated = rank == TruthRank::Undecided;
        Judgement { rank, candidates, is_truncated, first: Some(first.to_vec()), probabilities }
    }

    #[test]
    fn every_labelled_command_counts() {
        let judgements = [
            judgement(TruthRank::Listed(1), 1, &[1, 0]),
            judgement(TruthRank::Listed(2), 4, &[0, 2]),
            judgement(TruthRank::Absent, 1, &[0, 1]),
            judgement(TruthRank::Undecided, 90, &[3, 0]),
            Judgement {
                rank: TruthRank::Absent,
                candidates: 0,
                is_truncated: false,
                first: None,
                probabilities: ProbabilitySummary::default(),
            },
        ];
        let truths = [[1, 0], [1, 1], [2, 0], [1, 1], [0, 1]];
        let judged = |(truth, judgement)| JudgedLabel { truth, judgement: Some(judgement) };
        let mut labels: Vec<JudgedLabel<'_>> =
            truths.iter().map(<[u32; 2]>::as_slice).zip(&judgements).map(judged).collect();
        labels.push(JudgedLabel { truth: &[0, 1], judgement: None });

        let score = Score::new(&labels, Some(5.0));
        assert_eq!((score.commands, score.among, score.undecided, score.unexplained), (6, 2, 1, 1));
        assert_eq!((score.unique, score.unique_correct, score.top_1, score.cut_lists), (2, 1, 1, 1));
        assert!((score.precision - 2.0 / 6.0).abs() < 1e-12);
        assert_eq!(score.candidates, CandidateCounts { mean: 96.0 / 5.0, median: 1.0, max: 90 });
        assert_eq!((score.top_5, score.credible_set.among, score.credible_set.size.max), (2, 2, 2));
        // Four answers with the probability 0.5, one of them right.
        assert_eq!((score.calibration.expected_error, score.calibration.bins.len()), (Some(0.25), 1));
        // One label has no command; one command has no candidate, which is no answer.
        assert_eq!((score.calibration.missed, score.calibration.expected_error_with_missed), (1, Some(2.0 / 5.0)));
        // 1 bit remains of four commands, all 5 of the other two.
        assert_eq!(score.information.leaked_bits, Some(5.0 - 14.0 / 6.0));

        let actions = ActionScore::of_each(&["on".into(), "off".into()], &labels);
        let on = &actions[0];
        assert_eq!((on.commands, on.among, on.count, on.top_1_count), (4, 2, 5, 4));
        // Agreed: 1 of the first command, 0, 0, 1 of the fourth.
        assert_eq!((on.top_1_recall, on.top_1_precision), (Some(2.0 / 5.0), Some(2.0 / 4.0)));
        assert_eq!((actions[1].commands, actions[1].precision), (4, Some(1.0 / 4.0)));
    }

    #[test]
    fn median_of_an_even_number_is_the_mean_of_the_middle_two() {
        let judgements = [3, 8, 1, 4].map(|candidates| judgement(TruthRank::Listed(1), candidates, &[]));
        let labels: Vec<JudgedLabel<'_>> =
            judgements.iter().map(|judgement| JudgedLabel { truth: &[], judgement: Some(judgement) }).collect();
        assert_eq!(Score::new(&labels, None).candidates, CandidateCounts { mean: 4.0, median: 3.5, max: 8 });
    }

    #[test]
    fn score_without_labels_is_zero() {
        let none = Score::new(&[], None);
        assert_eq!((none.commands, none.precision, none.candidates), (0, 0.0, CandidateCounts::default()));
        assert_eq!(ActionScore::of_each(&["on".into()], &[])[0].precision, None);
    }

    /// Three devices that are switched `on` or `off`; `on` is three times as likely.
    const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
        [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
        [[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
        [prior]\nnumbers = [0.5, 0.25, 0.25]\ndecay = 0.5\nshares = [0.75, 0.25]\nconcentration = 1e9\n\
        [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
        [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n";

    /// The probabilities of all commands of one, two and three actions.
    const BINOMIAL: [f64; 9] = [
        0.5 * 0.75,
        0.5 * 0.25,
        9.0 / 64.0,
        6.0 / 64.0,
        1.0 / 64.0,
        27.0 / 256.0,
        27.0 / 256.0,
        9.0 / 256.0,
        1.0 / 256.0,
    ];

    fn bits(model: &Model, prior: PriorName) -> Option<f64> {
        bits_of_sums(&Home::from(model), prior)
    }

    fn entropy(probabilities: &[f64]) -> f64 {
        probabilities.iter().map(|p| -p * p.log2()).sum()
    }

    #[test]
    fn entropy_is_summed_over_all_commands() {
        let model = Model::from_toml(MODEL).unwrap();
        let found = bits(&model, PriorName::Learned).unwrap();
        assert!((found - entropy(&BINOMIAL)).abs() < 1e-6, "{found}");
        assert!((bits(&model, PriorName::Flat).unwrap() - 9_f64.log2()).abs() < 1e-12);
    }

    #[test]
    fn entropy_counts_commands_that_recur() {
        let recurring = "recurring = [{ counts = [2, 0], share = 0.2 }, { counts = [0, 9], share = 0.1 }]\n[replies]";
        let model = Model::from_toml(&MODEL.replace("[replies]", recurring)).unwrap();
        let mut probabilities = BINOMIAL.map(|p| 0.8 * p);
        // `on` twice; `off` nine times is not possible.
        probabilities[2] += 0.2;
        let found = bits(&model, PriorName::Recurring).unwrap();
        assert!((found - entropy(&probabilities)).abs() < 1e-6, "{found}");
    }

    #[test]
    fn entropy_is_finite_without_an_inventory_if_habits_are_known() {
        let mut model = Model::from_toml(MODEL).unwrap();
        model.inventory = None;
        let free = bits(&model, PriorName::Learned).unwrap();
        assert!(free > 2.0 && free < 8.0, "{free}");
        assert_eq!(bits(&model, PriorName::Flat), None);
    }

    #[test]
    fn missed_command_leaks_no_bits() {
        let probabilities = ProbabilitySummary { entropy_bits: 2.0, ..ProbabilitySummary::default() };
        let rank = TruthRank::Listed(1);
        let found = Judgement { rank, candidates: 4, is_truncated: true, first: None, probabilities };
        let labels = || [Some(&found), None].into_iter();
        let known = Information::new(labels(), Some(10.0));
        assert_eq!((known.posterior_bits, known.leaked_bits, known.is_bound), (6.0, Some(4.0), true));
        let unbounded = Information::new(labels(), None);
        assert_eq!((unbounded.posterior_bits, unbounded.leaked_bits), (2.0, None));
    }
}
