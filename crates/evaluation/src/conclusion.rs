//! What an evaluation says, in one sentence for people, beside what guessing would reach.

use std::collections::BTreeMap;

use serde::Serialize;
use sizeleak_learning::labels::{Labels, MatchCounts};
use sizeleak_model::Model;
use sizeleak_model::statistics::times;
use sizeleak_pipeline::{ModelFit, Pipeline};
use sizeleak_text::{counted, percent};

use crate::score::Score;
use crate::statistics::{Interval, percent_within};

/// A guess of more different actions is not spelled out in the sentence.
const MAX_SPELLED: usize = 4;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conclusion {
    pub sentence: String,
    /// The share of labelled commands whose first candidate is the truth; null if nothing can be concluded.
    pub named: Option<f64>,
    /// Wilson's 95 % interval of that share.
    pub interval: Option<Interval>,
    /// What an observer reaches who sees nothing; null without labels.
    pub baseline: Option<Baseline>,
}

/// The most frequent label: who always guesses it is right as often as it occurs among these labels, so that no fixed
/// guess does better.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baseline {
    /// Its actions; none for a message that carries none. Of labels that are equally frequent, those that come first.
    pub actions: Vec<GuessedAction>,
    pub commands: u64,
    pub share: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuessedAction {
    pub action: String,
    pub count: u32,
}

impl Conclusion {
    /// The conclusion from the answers of a pipeline; `subject` says whose they are.
    pub(crate) fn new(labels: &Labels, score: &Score, matches: &MatchCounts, fit: ModelFit, subject: &str) -> Self {
        let baseline = Baseline::of(labels);
        let obstacle = match (&baseline, fit) {
            (None, _) => Some("There are no labelled commands".to_owned()),
            (_, ModelFit::None { .. }) => Some("This model does not fit this gateway".to_owned()),
            (_, ModelFit::Elsewhere { .. }) => {
                Some("This model is for another gateway or for other services".to_owned())
            }
            _ if matches.matched == 0 => {
                let labelled = counted(score.commands, "labelled command", "labelled commands");
                Some(format!("None of the {labelled} was found"))
            }
            _ => None,
        };
        let (Some(baseline), None) = (&baseline, &obstacle) else {
            let sentence = format!("{}, so nothing can be concluded.", obstacle.unwrap_or_default());
            return Self { sentence, named: None, interval: None, baseline };
        };
        let named = score.top_1 as f64 / score.commands.max(1) as f64;
        let interval = score.intervals.top_1;
        let sentence = [
            format!("{subject} {} of ", percent_within(named, interval)),
            counted(score.commands, "command", "commands"),
            missing(matches),
            baseline.comparison(named, interval),
            misfits(fit),
            too_sure(score),
            ".".to_owned(),
        ];
        Self {
            sentence: sentence.concat(),
            named: Some(named),
            interval: Some(interval),
            baseline: Some(baseline.clone()),
        }
    }
}

impl Baseline {
    fn of(labels: &Labels) -> Option<Self> {
        let times: BTreeMap<&[u32], u64> = times(labels.rows.iter().map(|row| &row.counts[..]));
        // The first of those that are equally frequent, in the order of the labels.
        let most = times.values().copied().max()?;
        let counts = labels.rows.iter().map(|row| &*row.counts).find(|counts| times.get(counts) == Some(&most))?;
        let actions = labels.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
        let actions = actions.map(|(action, count)| GuessedAction { action: action.clone(), count: *count }).collect();
        Some(Self { actions, commands: most, share: most as f64 / labels.rows.len() as f64 })
    }

    fn guess(&self) -> String {
        if self.actions.is_empty() {
            return " (no action)".to_owned();
        }
        if self.actions.len() > MAX_SPELLED {
            return String::new();
        }
        let words = self.actions.iter().map(|GuessedAction { action, count }| format!("{count} {action}"));
        format!(" ({})", words.collect::<Vec<_>>().join(", "))
    }

    /// How a share compares with always guessing the most frequent label.
    fn comparison(&self, named: f64, Interval { low, high }: Interval) -> String {
        let guess = format!("always guessing the most frequent ones{}", self.guess());
        let share = percent(self.share);
        if low > self.share {
            format!("; {guess} is right in {share}")
        } else if high < self.share {
            format!(
                ", which is worse than {guess}, right in {share}: the model or the labels are not of these commands, and \
                 the figures do not say how much sizes give away"
            )
        } else if named > self.share {
            format!(", which is not certainly better than {guess}, right in {share}")
        } else {
            format!(", which is no better than {guess}, right in {share}")
        }
    }
}

fn missing(matches: &MatchCounts) -> String {
    match matches.missed + matches.ambiguous {
        0 => String::new(),
        1 => ", one of which was not found".to_owned(),
        missing => format!(", {missing} of which were not found"),
    }
}

fn misfits(fit: ModelFit) -> String {
    match fit {
        ModelFit::Some { misfits, judged } => format!("; the model does not fit {misfits} of {judged} flows"),
        ModelFit::All | ModelFit::None { .. } | ModelFit::Elsewhere { .. } => String::new(),
    }
}

fn too_sure(score: &Score) -> String {
    let Some(claimed) = score.calibration.too_sure else { return String::new() };
    format!(
        "; the answers claim to be right in {:.0} %, far more than chance explains: do not trust their probabilities",
        100.0 * claimed
    )
}

/// The beginning of a sentence about the answers of a pipeline that uses these sections of a model: what the observer sees,
/// and names.
pub(crate) fn subject(pipeline: &Pipeline, models: &[Model]) -> String {
    let is_off = pipeline.option("pruner", "mode").is_some_and(|mode| mode.as_str() == Some("none"));
    let seen = if pipeline.has("pruner") && !is_off { "sizes and replies" } else { "sizes" };
    let has_sizes = models.iter().any(|model| !model.actions.is_empty());
    let named = if has_sizes { "the exact actions" } else { "the kind, as it was labelled," };
    format!("An observer who sees only {seen} names {named} of")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{JudgedLabel, Judgement, ProbabilitySummary, TruthRank};

    const SUBJECT: &str = "An observer who sees only sizes and replies names the exact actions of";

    fn labels(rows: &str) -> Labels {
        Labels::read(format!("time,on,off\n{rows}").as_bytes()).unwrap()
    }

    /// The conclusion from labels of which the first `right` are answered rightly, and the last `missed` were not found.
    fn conclusion(labels: &Labels, right: usize, missed: usize, fit: ModelFit, subject: &str) -> Conclusion {
        let judgement = |rank| Judgement {
            rank,
            candidates: 4,
            is_truncated: false,
            first: None,
            probabilities: ProbabilitySummary::default(),
        };
        let [first, second] = [1, 2].map(|rank| judgement(TruthRank::Listed(rank)));
        let found = labels.rows.len() - missed;
        let judged = labels.rows.iter().zip(0..).map(|(row, at)| {
            let judgement = (at < found).then_some(if at < right { &first } else { &second });
            JudgedLabel { truth: &row.counts, judgement }
        });
        let score = Score::new(&judged.collect::<Vec<_>>(), None);
        let (matched, missed) = (found as u64, missed as u64);
        let counts = MatchCounts { matched, missed, ambiguous: 0, spurious: 0 };
        Conclusion::new(labels, &score, &counts, fit, subject)
    }

    /// A hundred labels, ten of which are `2 on, 1 off`.
    fn hundred() -> Labels {
        let row = |at: u32| if at % 10 == 7 { format!("{at},2,1\n") } else { format!("{at},{},0\n", at + 3) };
        labels(&(0..100).map(row).collect::<String>())
    }

    #[test]
    fn sentence_has_the_share_its_interval_and_that_of_the_best_fixed_guess() {
        let conclusion = conclusion(&hundred(), 60, 0, ModelFit::All, SUBJECT);
        assert_eq!(
            conclusion.sentence,
            "An observer who sees only sizes and replies names the exact actions of 60.0 % (50–70) of 100 commands; always \
             guessing the most frequent ones (2 on, 1 off) is right in 10.0 %."
        );
        let baseline = conclusion.baseline.unwrap();
        assert_eq!((conclusion.named, baseline.commands, baseline.share), (Some(0.6), 10, 0.1));
    }

    #[test]
    fn sentence_says_where_guessing_is_as_good() {
        let said = |right| conclusion(&hundred(), right, 0, ModelFit::All, SUBJECT).sentence;
        assert!(said(14).contains("14.0 % (8–23) of 100 commands, which is not certainly better than always guessing"));
        assert!(
            said(10).contains(", which is no better than always guessing the most frequent ones (2 on, 1 off), right")
        );
        let worse = said(1);
        assert!(worse.contains(", which is worse than always guessing"), "{worse}");
        assert!(worse.ends_with("do not say how much sizes give away."), "{worse}");
    }

    #[test]
    fn sentence_says_what_it_rests_on_and_what_is_missing() {
        let kinds = "An observer who sees only sizes names the kind, as it was labelled, of";
        let said = conclusion(&hundred(), 60, 12, ModelFit::Some { misfits: 1, judged: 4 }, kinds).sentence;
        let parts = [
            "sees only sizes names the kind, as it was labelled, of 60.0 %",
            "100 commands, 12 of which were not found;",
        ];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(said.ends_with("; the model does not fit 1 of 4 flows."), "{said}");
    }

    #[test]
    fn nothing_is_concluded_from_nothing() {
        let unanswered = |labels: &Labels, missed, fit| conclusion(labels, 0, missed, fit, SUBJECT);
        let all = hundred();
        for (conclusion, words) in [
            (unanswered(&labels(""), 0, ModelFit::All), "There are no labelled commands, so nothing"),
            (unanswered(&all, 100, ModelFit::All), "None of the 100 labelled commands was found, so nothing"),
            (unanswered(&all, 0, ModelFit::None { judged: 1 }), "This model does not fit this gateway, so nothing"),
            (unanswered(&all, 0, ModelFit::Elsewhere { commands: 9 }), "This model is for another gateway"),
        ] {
            assert!(conclusion.sentence.starts_with(words), "{}", conclusion.sentence);
            assert_eq!((conclusion.named, conclusion.interval), (None, None));
        }
    }

    #[test]
    fn of_equally_frequent_labels_the_first_is_guessed() {
        let guess = |rows: &str| Baseline::of(&labels(rows)).unwrap().guess();
        assert_eq!(guess("1,0,2\n2,1,0\n3,1,0\n4,0,2\n5,3,3\n"), " (2 off)");
        assert_eq!(guess("1,0,0\n2,1,0\n3,0,0\n"), " (no action)");
    }
}
