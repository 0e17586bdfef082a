use super::*;
use crate::judge::{JudgedLabel, Judgement, ProbabilitySummary, TruthRank};

const SUBJECT: &str = "An observer who sees only sizes and replies names the exact actions of";

fn labels(rows: &str) -> Labels {
    Labels::read(format!("time,on,off\n{rows}").as_bytes()).unwrap()
}

/// The conclusion from labels of which the first `right` are answered rightly, and the last `missed` were not found.
fn conclusion(labels: &Labels, right: usize, missed: usize, fit: ModelFit, subject: Option<&str>) -> Conclusion {
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
    let conclusion = conclusion(&hundred(), 60, 0, ModelFit::All, Some(SUBJECT));
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
    let said = |right| conclusion(&hundred(), right, 0, ModelFit::All, Some(SUBJECT)).sentence;
    assert!(said(14).contains("14.0 % (8–23) of 100 commands, which is not certainly better than always guessing"));
    assert!(said(10).contains(", which is no better than always guessing the most frequent ones (2 on, 1 off), right"));
    let worse = said(1);
    assert!(worse.contains(", which is worse than always guessing"), "{worse}");
    assert!(worse.ends_with("do not say how much sizes give away."), "{worse}");
}

#[test]
fn sentence_says_what_it_rests_on_and_what_is_missing() {
    let kinds = "An observer who sees only sizes names the kind, as it was labelled, of";
    let said = conclusion(&hundred(), 60, 12, ModelFit::Some { misfits: 1, judged: 4 }, Some(kinds)).sentence;
    let parts =
        ["sees only sizes names the kind, as it was labelled, of 60.0 %", "100 commands, 12 of which were not found;"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(said.ends_with("; the model does not fit 1 of 4 flows."), "{said}");
}

#[test]
fn nothing_is_concluded_from_nothing() {
    let unanswered = |labels: &Labels, missed, fit, kind| conclusion(labels, 0, missed, fit, kind);
    let all = hundred();
    for (conclusion, words) in [
        (unanswered(&labels(""), 0, ModelFit::All, Some(SUBJECT)), "There are no labelled commands, so nothing"),
        (
            unanswered(&all, 100, ModelFit::All, Some(SUBJECT)),
            "None of the 100 labelled commands was found, so nothing",
        ),
        (
            unanswered(&all, 0, ModelFit::None { judged: 1 }, Some(SUBJECT)),
            "This model does not fit this gateway, so nothing",
        ),
        (unanswered(&all, 0, ModelFit::Elsewhere { commands: 9 }, Some(SUBJECT)), "This model is for another gateway"),
        (unanswered(&all, 0, ModelFit::All, None), "No model can be learned from these labels, so nothing"),
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
