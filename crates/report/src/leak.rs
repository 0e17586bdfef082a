//! How often commands are named. As an audit of a model computes it: the tiles, the sizes of actions and which commands
//! share one, and anonymity. And as labelled captures show it: the verdict on a model's answers, their calibration, and
//! how fast a model is learned.

use sizeleak_audit::leakage::{Audit, Learned, command_name};
use sizeleak_audit::padding::JudgedPolicy;
use sizeleak_evaluation::{Calibration, CalibrationBin, Conclusion, CurvePoint, Evaluation, LearningCurve, Score};
use sizeleak_inference::channel::{Measures, Observer};
use sizeleak_inference::space::SizeRow;
use sizeleak_model::{Basis, Model};
use sizeleak_text::{counted, percent, range_in_words};

use crate::document::Value::{AtMost, Count, Number, Share, Sum, Unknown, Within};
use crate::document::{ChartKind, Figure, Section, Tile, Verdict};

/// The secrets of commands, as tiles name them.
pub const SECRETS: [&str; 3] = ["Exact command", "Number of actions", "Types of devices"];

pub fn verdict(audit: &Audit) -> Verdict {
    let Measures { times_guessing, information_bits, prior_bits, .. } = audit.by_size.command;
    Verdict {
        sentence: audit.sentence(),
        meaning: format!(
            "Computed from the model: that is {times_guessing:.1} times as often as by guessing: of {prior_bits:.1} bits of uncertainty about a \
             command, its size gives away {information_bits:.1}. The figure is exact for the model and its prior, over all commands, \
             so it has no interval; labelled captures (`--labels`) add one that was measured."
        ),
    }
}

/// Whether a secret has one value, which everybody knows.
pub fn has_one_value(secret: &Measures) -> bool {
    secret.secrets <= 1.0
}

pub fn tiles(audit: &Audit) -> Vec<Tile> {
    let replies = [(Observer::Replies, &audit.with_replies), (Observer::ReplyCount, &audit.with_reply_count)];
    let seen = replies.iter().find_map(|(_, learned)| learned.as_ref());
    let is_open =
        |(observer, learned): &(Observer, &Option<Learned>)| learned.is_none() && audit.too_many.contains(observer);
    // Replies that say nothing leave the observer with the size.
    let with_replies = seen.or_else(|| (!replies.iter().any(is_open)).then_some(&audit.by_size));
    let tile = |title, secret: &dyn Fn(&Learned) -> Option<Measures>| {
        let of_secret = |by_size: Measures| {
            let named = |share, learned: &Learned| match learned.is_exact {
                _ if has_one_value(&by_size) => Unknown,
                true => Share(share),
                false => AtMost(share),
            };
            let of_replies = with_replies.and_then(|learned| Some(named(secret(learned)?.named, learned)));
            [named(by_size.guessing, &audit.by_size), named(by_size.named, &audit.by_size), of_replies.into()]
        };
        let source = "computed from the model".to_owned();
        Tile { title, source, named: secret(&audit.by_size).map(of_secret) }
    };
    let [command, number, kinds] = SECRETS;
    vec![
        tile(command, &|learned| Some(learned.command.clone())),
        tile(number, &|learned| Some(learned.number.clone())),
        tile(kinds, &|learned| learned.kinds.clone()),
    ]
}

/// The cheapest padding table that leaves hardly more than guessing, in words.
pub fn fix(table: &JudgedPolicy, audit: &Audit, commands_per_day: f64) -> String {
    let JudgedPolicy { name, added_bytes, megabytes_a_day, .. } = table;
    let Measures { named, guessing, worst_posterior, .. } = table.by_size.command;
    let shares = [table.added_share, named, audit.by_size.command.named, guessing, worst_posterior];
    let [added, named, before, guessing, worst] = shares.map(percent);
    format!(
        "Computed from the model: pad every command by a {name}. That adds {added} to the bytes of commands ({added_bytes:.0} \
         bytes each, {megabytes_a_day:.2} MB a day of {commands_per_day} commands), and by its size the exact command is \
         named in {named} of cases instead of {before} (guessing: {guessing}); at worst, a size makes one command {worst} sure."
    )
}

/// What sizes of a model are of, where they are not those on the wire.
fn beside_the_wire(basis: &Basis) -> String {
    match basis {
        Basis::Plaintext { record_overhead, .. } => {
            format!(" Bytes are of plaintext: on the wire, a record has {} more.", range_in_words(*record_overhead))
        }
        Basis::Wire => String::new(),
    }
}

pub fn expected_sizes(rows: &[SizeRow], basis: &Basis) -> Figure {
    let row = |row: &SizeRow| [row.bytes.into(), Share(row.probability), Share(row.greatest), Count(row.commands)];
    Figure::new("expected-sizes", "bytes | share of commands | named | possible commands", rows.iter().map(row))
        .titled(
            "Sizes to expect, by the model",
            format!(
                "Named is what the best guess by a size gets right, as a share of all commands: together, how often the \
                 exact command is named.{}",
                beside_the_wire(basis)
            ),
        )
        .drawn(ChartKind::Spectrum, &[0, 1, 2])
        .read_by("A bar is the share of commands with a size, and its dark part what is named of them.")
}

pub fn sizes(audit: &Audit, model: &Model) -> Section {
    let actions = model.actions.iter().map(|action| {
        let [least, most] = action.size_range();
        [action.name.as_str().into(), Count(action.size as f64), Count(least as f64), Count(most as f64)]
    });
    let actions = Figure::new("actions", "action | bytes | at least | at most", actions)
        .titled(
            "Bytes that each action adds",
            format!(
                "A message without any action has {} bytes.{}",
                model.overhead,
                beside_the_wire(&model.learned.basis)
            ),
        )
        .drawn(ChartKind::Bars, &[0, 1]);
    let collisions = audit.collisions.iter().map(|collision| {
        let names: Vec<String> = collision.commands.iter().map(|counts| command_name(model, counts)).collect();
        let bytes = model.overhead + collision.bytes;
        [Count(bytes as f64), Count(names.len() as f64), names.join("  =  ").into()]
    });
    let collisions = Figure::new("collisions", "bytes | commands | which", collisions).titled(
        "Commands of one or two actions that have the same size",
        "Their size does not tell these apart. Commands of more actions are hidden by more others.",
    );
    let text = format!(
        "There are {} commands of up to {}. They have {}.",
        Count(audit.commands).shown(),
        counted(audit.most_actions, "action", "actions"),
        counted(audit.sizes, "size", "sizes")
    );
    Section::new("sizes", vec![text], vec![actions, collisions, by_number(audit)])
}

pub fn by_number(audit: &Audit) -> Figure {
    let rows = audit.by_number.iter().map(|row| {
        let [actions, commands, sizes] = [f64::from(row.actions), row.commands, row.sizes as f64].map(Count);
        [actions, Share(row.probability), commands, sizes, Sum(row.alone), Share(row.named)]
    });
    Figure::new("numbers", "actions | of commands | different | sizes | alone, ε known | named", rows)
        .titled(
            "How often the exact command is named, by its number of actions",
            "The more devices a command moves, the more other commands have its size.",
        )
        .drawn(ChartKind::Bars, &[0, 5])
}

pub fn anonymity_sets(audit: &Audit) -> Figure {
    let sets = audit.by_size.command.sets.iter().map(|set| {
        let [from, to] = [set.from, set.to].map(|commands| Count(commands).shown());
        let range = if set.to - set.from < 0.5 { from } else { format!("{from}–{to}") };
        [range.into(), Share(set.probability)]
    });
    Figure::new("anonymity-sets", "commands that a size leaves possible | of commands", sets)
        .titled("Commands that a size leaves possible", "A set of 1 is a command that its size gives away for certain.")
        .drawn(ChartKind::Bars, &[0, 1])
}

/// How many commands look alike, and how many guesses an observer needs.
pub fn anonymity(audit: &Audit) -> Section {
    let measures = &audit.by_size.command;
    let once = [1_u64.into(), Share(measures.guessing), Share(measures.named)];
    let tries =
        measures.tries.iter().map(|tries| [(tries.tries as u64).into(), Share(tries.guessing), Share(tries.named)]);
    let tries = Figure::new("tries", "guesses | guessing | by size", std::iter::once(once).chain(tries))
        .titled("Right within so many guesses", "Without anything seen, and by the size.")
        .drawn(ChartKind::Bars, &[0, 1, 2]);
    let sure = measures.certain.iter().map(|certain| {
        format!("at least {:.0} % sure of {} of commands", 100.0 * certain.posterior, percent(certain.probability))
    });
    let text = format!("By the size alone, an observer is {}.", sure.collect::<Vec<_>>().join(", "));
    Section::new("anonymity", vec![text], vec![anonymity_sets(audit), tries])
}

pub fn measured_verdict(evaluation: &Evaluation) -> Verdict {
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
pub fn measured_tile(evaluation: &Evaluation) -> Tile {
    let share = |score: &Score| Within(score.top_1 as f64 / score.commands.max(1) as f64, score.intervals.top_1);
    let guessing = evaluation.conclusion.baseline.as_ref().map(|baseline| Share(baseline.share)).into();
    let after = share(&evaluation.after_pruning);
    let named = match &evaluation.before_pruning {
        Some(before) => [guessing, share(before), after],
        None => [guessing, after, Unknown],
    };
    let labelled = counted(evaluation.commands, "labelled command", "labelled commands");
    let source = format!("measured: the model's answers to {labelled}");
    Tile { title: SECRETS[0], source, named: Some(named) }
}

/// How often answers are right, by the probability that they state.
pub fn reliability(calibration: &Calibration) -> Figure {
    let row = |bin: &CalibrationBin| {
        let CalibrationBin { from, to, answers, probability, right, interval } = bin;
        [format!("{from:.1}–{to:.1}").into(), (*answers).into(), Share(*probability), Within(*right, *interval)]
    };
    let columns = "probability | answers | mean probability | right";
    let title = "How often answers of a probability are right";
    Figure::new("reliability", columns, calibration.bins.iter().map(row))
        .titled(title, "In brackets is the interval of 95 % (Wilson).")
        .drawn(ChartKind::Reliability, &[2, 3, 1])
        .read_by("On the diagonal, probabilities are right.")
}

pub fn calibration(evaluation: &Evaluation) -> Section {
    let calibration = &evaluation.after_pruning.calibration;
    let text = match (calibration.expected_error, calibration.by_chance) {
        (Some(error), Some(chance)) => format!(
            "The first candidates say how probable they are. On average that is off by {} (answers that are perfectly \
             calibrated: {}, by chance).",
            percent(error),
            percent(chance)
        ),
        _ => "No answer has a candidate, so that there is nothing to compare.".to_owned(),
    };
    Section::new("calibration", vec![text], vec![reliability(calibration)])
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
         the same {}.",
        curve.drawn_from,
        counted(curve.tested, "other command", "other commands")
    );
    Section::new("learning", vec![text], vec![figure])
}
