//! A learned model for people.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};

use sizeleak_learning::LearnedModel;
use sizeleak_model::{Basis, Method, Model, ReplyBytes, Smoothing};

/// How many values of ε are shown.
const SHOWN: usize = 6;

/// A summary in several lines.
#[derive(Debug)]
pub(super) struct Summary<'a>(pub(super) &'a LearnedModel);

impl Display for Summary<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let LearnedModel { model, labels, remarks, .. } = self.0;
        for remark in remarks {
            writeln!(formatter, "note: {remark}")?;
        }
        let method = match model.learned.method {
            Method::Robust => "by a robust fit",
            Method::Paper => "by the paper's procedure",
        };
        writeln!(formatter, "learned {method} from {} of {labels} labelled commands", model.learned.commands)?;
        writeln!(formatter, "sizes are {}", of_basis(&model.learned.basis))?;
        self.write_sizes(formatter)?;
        write_epsilons(formatter, model)?;
        write_replies(formatter, model)?;
        write_noise(formatter, model)
    }
}

impl Summary<'_> {
    fn write_sizes(&self, formatter: &mut Formatter<'_>) -> Result {
        let LearnedModel { model, occurrences, .. } = self.0;
        let names = model.actions.iter().map(|action| action.name.chars().count());
        let width = names.max().unwrap_or(0).max("overhead |ac|".len());
        writeln!(formatter, "\n  {:<width$}  {:>6} bytes", "overhead |ac|", model.overhead)?;
        for (action, commands) in model.actions.iter().zip(occurrences) {
            writeln!(formatter, "  {:<width$}  {:>6} bytes, in {commands} commands", action.name, action.size)?;
        }
        writeln!(formatter)
    }
}

fn of_basis(basis: &Basis) -> String {
    match basis {
        Basis::Plaintext { cipher_suite, record_overhead: [least, most] } => {
            let added = if least == most { least.to_string() } else { format!("{least} to {most}") };
            format!(
                "plaintext; sessions without a handshake are assumed to use {cipher_suite} ({added} bytes per record)"
            )
        }
        Basis::Wire => "those on the wire, under an unknown cipher suite".to_owned(),
    }
}

fn write_epsilons(formatter: &mut Formatter<'_>, model: &Model) -> Result {
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for tuple in model.neighbours.tuples() {
        *times.entry(tuple.epsilon).or_default() += tuple.times;
    }
    let all: u64 = times.values().sum();
    let mut frequent: Vec<(i64, u64)> = times.into_iter().collect();
    frequent.sort_by_key(|(epsilon, times)| (std::cmp::Reverse(*times), *epsilon));
    let share = |times: u64| 100.0 * times as f64 / all as f64;
    let shown = frequent.iter().take(SHOWN).map(|(epsilon, times)| format!("{epsilon} in {:.1} %", share(*times)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let rest = frequent.len().saturating_sub(SHOWN);
    let rest = if rest > 0 { format!(" and {rest} more values") } else { String::new() };
    let used = if model.smoothing == Smoothing::NEAREST {
        "the nearest command is".to_owned()
    } else {
        format!("the {} nearest commands are", model.smoothing.k)
    };
    writeln!(formatter, "ε: {shown}{rest}; {used} used")
}

/// The traffic besides commands, where the model has noise.
fn write_noise(formatter: &mut Formatter<'_>, model: &Model) -> Result {
    let Some(noise) = &model.noise else { return Ok(()) };
    let (mut answers, mut alone) = (0_u64, 0_u64);
    for kind in &noise.to_gateway {
        (answers, alone) = (answers.saturating_add(kind.answers), alone.saturating_add(kind.alone));
    }
    let sizes = noise.to_gateway.len();
    writeln!(
        formatter,
        "noise: besides commands the service sent {answers} answers and {alone} other messages, of {sizes} sizes"
    )
}

fn write_replies(formatter: &mut Formatter<'_>, model: &Model) -> Result {
    let replies = &model.replies;
    if replies.is_informative() {
        writeln!(
            formatter,
            "replies: {} and {} per action; {:.1} % missing, {:.3} others per command",
            replies.fixed,
            replies.per_action,
            100.0 * replies.missing,
            replies.surplus
        )?;
    } else {
        writeln!(formatter, "replies: their number does not depend on the number of actions")?;
    }
    let Some(bytes) = &model.reply_bytes else { return Ok(()) };
    let figures = model.actions.iter().zip(&bytes.per_action);
    let of_actions: Vec<String> = figures.map(|(action, bytes)| format!("{bytes} for {}", action.name)).collect();
    let ReplyBytes { fixed, per_reply, spread, .. } = bytes;
    let of_actions = of_actions.join(", ");
    writeln!(formatter, "bytes of replies: {fixed}, {per_reply} per reply, {of_actions}; ± {spread}")
}
