//! What labelled captures say: the verdict on a model's answers, their calibration, and how fast a model is learned.

use sizeleak_evaluation::{CalibrationBin, Conclusion, CurvePoint, Evaluation, LearningCurve, Score};
use sizeleak_text::percent;

use crate::document::Value::{Number, Share, Unknown, Within};
use crate::document::{ChartKind, Figure, Section, Tile, Verdict};
use crate::leak::SECRETS;

pub fn verdict(evaluation: &Evaluation) -> Verdict {
    let Conclusion { sentence, named, interval, baseline } = &evaluation.conclusion;
    let meaning = match (named, interval, baseline) {
        (Some(named), Some(interval), Some(baseline)) if interval.low > baseline.share => format!(
            "That is {:.1} times as often as by guessing. It was measured on labelled commands that stand for others of \
             this gateway: in brackets is the interval of 95 %.",
            named / baseline.share
        ),
        (Some(_), ..) => {
            "By these labels, sizes may say no more than guessing does: more labelled commands would tell.".to_owned()
        }
        _ => "`sizeleak learn` makes a model of the gateway that is to be judged.".to_owned(),
    };
    Verdict { sentence: sentence.clone(), meaning }
}

/// How often answers name the command, as measured. Without a pruner, replies are not used.
pub fn tile(evaluation: &Evaluation) -> Tile {
    let share = |score: &Score| Within(score.top_1 as f64 / score.commands.max(1) as f64, score.intervals.top_1);
    let guessing = evaluation.conclusion.baseline.as_ref().map(|baseline| Share(baseline.share)).into();
    let after = share(&evaluation.after_pruning);
    let named = match &evaluation.before_pruning {
        Some(before) => [guessing, share(before), after],
        None => [guessing, after, Unknown],
    };
    let source = format!("measured: the model's answers to {} labelled commands", evaluation.commands);
    Tile::new(SECRETS[0], source, Some(named))
}

pub fn calibration(evaluation: &Evaluation) -> Section {
    let calibration = &evaluation.after_pruning.calibration;
    let row = |bin: &CalibrationBin| {
        let CalibrationBin { from, to, answers, probability, right, interval } = bin;
        [format!("{from:.1}–{to:.1}").into(), (*answers).into(), Share(*probability), Within(*right, *interval)]
    };
    let columns = "probability | answers | mean probability | right";
    let figure = Figure::new("reliability", columns, calibration.bins.iter().map(row))
        .titled(
            "How often answers of a probability are right",
            "On the diagonal, probabilities are right. A line, and in brackets, is the interval of 95 % (Wilson).",
        )
        .drawn(ChartKind::Reliability, &[2, 3]);
    let text = match (calibration.expected_error, calibration.by_chance) {
        (Some(error), Some(chance)) => format!(
            "The first candidates say how probable they are. On average that is off by {} (answers that are perfectly \
             calibrated: {}, by chance).",
            percent(error),
            percent(chance)
        ),
        _ => "No answer has a candidate, so that there is nothing to compare.".to_owned(),
    };
    Section::new("calibration", vec![text], vec![figure])
}

pub fn learning_curve(curve: &LearningCurve) -> Section {
    let row = |point: &CurvePoint| {
        let [labels, models, samples] = [point.labels, point.learned, point.draws].map(|count| (count as u64).into());
        let named = point.after_pruning.as_ref().map(|score| Within(score.top_1.median, score.top_1.interval));
        [labels, models, samples, named.into(), point.sizes.map(|sizes| Number(sizes, 2)).into()]
    };
    let columns = "labels | models | samples | named | right sizes";
    let figure = Figure::new("labels", columns, curve.points.iter().map(row))
        .titled(
            "Exact commands named by models of so many labels",
            "The median of models of labels drawn at random, with the hull of their intervals of 95 %.",
        )
        .drawn(ChartKind::Growth, &[0, 3]);
    let text = format!(
        "How many commands somebody must label to learn this gateway: models of fewer and fewer of {} labels, each tested on \
         the same {} other commands.",
        curve.drawn_from, curve.tested
    );
    Section::new("learning", vec![text], vec![figure])
}
