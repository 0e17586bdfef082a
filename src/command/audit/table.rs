//! An audit as text for people.

use sizeleak_audit::leakage::{Audit, Learned, NumberRow, Repeated, command_name};
use sizeleak_inference::channel::{Measures, Observer, SetSizes};
use sizeleak_model::{LearnedPadding, Model};
use sizeleak_report::leak::has_one_value;
use sizeleak_text::escaped;

use crate::command::document::{Document, blank, line, numbers, paragraph};
use crate::command::figures::{NONE, percent};

/// Where the other lines of what is taken to be known begin.
const INDENT: usize = 2;

/// Sums of probabilities are exact up to this.
const ROUNDING: f64 = 1e-9;

/// So many collisions are shown.
const SHOWN: usize = 6;

/// The audit of a model under a prior that is described.
pub(super) fn table(audit: &Audit, model: &Model, prior: &str) -> Document {
    [
        paragraph(audit.sentence(), 0),
        blank(),
        premises(audit, model, prior),
        blank(),
        named(audit),
        blank(),
        measures(&audit.by_size),
        blank(),
        sets(&audit.by_size.command.sets),
        blank(),
        by_number(&audit.by_number),
        blank(),
        collisions(audit, model),
    ]
    .concat()
}

/// What is taken to be known.
fn premises(audit: &Audit, model: &Model, prior: &str) -> Document {
    let devices = model.inventory.as_ref().map_or_else(
        || "any number of devices, as no inventory names them (`--inventory FILE`)".to_owned(),
        |inventory| {
            let kinds: Vec<String> =
                inventory.devices.iter().map(|device| format!("{} {}", device.count, device.name)).collect();
            kinds.join(", ")
        },
    );
    let home = format!(
        "{devices}; {} actions; {} commands of up to {} actions, which have {} sizes",
        model.actions.len(),
        count(audit.commands),
        audit.most_actions,
        count(audit.sizes as f64)
    );
    let left_out = match audit.left_out {
        left_out if left_out > 0.0 => format!("; commands of more actions are left out ({} of all)", share(left_out)),
        _ => String::new(),
    };
    let padded = match &model.learned.padding {
        Some(LearnedPadding::Modulo(_)) => "; where the multiples begin is not known, and taken to be 0",
        _ => "",
    };
    let blocks = audit.block_bytes.map(|bytes| {
        format!("sizes are multiples of {bytes} bytes on the wire: smaller differences are not seen{padded}")
    });
    let lines = [("prior", Some(prior.to_owned())), ("home", Some(home + &left_out)), ("blocks", blocks)];
    lines.into_iter().filter_map(|(name, text)| Some(named_paragraph(name, &text?))).flatten().collect()
}

/// A paragraph beside its name.
pub(super) fn named_paragraph(name: &str, text: &str) -> Document {
    paragraph(format!("{name}: {}", escaped(text)), INDENT)
}

/// Who names what how often.
fn named(audit: &Audit) -> Document {
    let all = |name: &str, learned: &Learned, figure: &dyn Fn(&Measures) -> String| {
        let kinds = learned.kinds.as_ref().map_or_else(|| NONE.to_owned(), figure);
        [name.to_owned(), figure(&learned.command), figure(&learned.number), kinds]
    };
    // A secret with one value needs no observer.
    let unknown_before =
        |measures: &Measures, figure| if has_one_value(measures) { NONE.to_owned() } else { share(figure) };
    let right = |measures: &Measures| unknown_before(measures, measures.named);
    let unknown = |name: &str, why: &str| [name.to_owned(), why.to_owned(), why.to_owned(), why.to_owned()];
    let mut rows = vec![
        all("by guessing, V₀", &audit.by_size, &|measures| unknown_before(measures, measures.guessing)),
        all("by size, V", &audit.by_size, &right),
    ];
    for Repeated { observations, named } in &audit.repeated {
        let named = named.map_or_else(|| NONE.to_owned(), share);
        rows.push([format!("  by {observations} sizes of the same command"), named, String::new(), String::new()]);
    }
    rows.push(["  by any number of them".to_owned(), share(audit.in_the_end), String::new(), String::new()]);
    // In blocks, ε moves the size to another block or not, which is not worked out for each of its values.
    let without = if audit.block_bytes.is_some() { "  by size, if ε were 0" } else { "  by size, with ε known" };
    rows.push(all(without, &audit.with_known_epsilon, &right));
    let observers = [
        ("by size and number of replies", Observer::ReplyCount, &audit.with_reply_count),
        ("by size and single replies", Observer::Replies, &audit.with_replies),
    ];
    for (name, observer, learned) in observers {
        rows.push(match learned {
            Some(learned) if learned.is_exact => all(name, learned, &right),
            Some(learned) => all(name, learned, &|measures| format!("≤ {}", share(measures.named))),
            None if audit.too_many.contains(&observer) => unknown(name, NONE),
            None => unknown(name, "as by size"),
        });
    }
    numbers(["named correctly", "command", "number of actions", "types of devices"], rows)
}

/// A measure: its name, and how it is shown.
pub(super) struct MeasureRow(pub(super) &'static str, pub(super) fn(&Measures) -> String);

/// All measures of a secret.
pub(super) const ROWS: [MeasureRow; 19] = [
    MeasureRow("V / V₀", |measures| decimals(measures.times_guessing)),
    MeasureRow("  at most, under any prior", |measures| decimals(measures.capacity)),
    MeasureRow("V − V₀", |measures| share(measures.above_guessing.max(0.0))),
    MeasureRow("log₂ V / V₀, in bits", |measures| decimals(measures.min_entropy_bits)),
    MeasureRow("entropy before, in bits", |measures| decimals(measures.prior_bits)),
    MeasureRow("  given away by size", |measures| decimals(measures.information_bits)),
    MeasureRow("  left", |measures| decimals(measures.remaining_bits)),
    MeasureRow("Bayes security β", |measures| optional(measures.security)),
    MeasureRow("  at least, under any prior", |measures| optional(measures.least_security)),
    MeasureRow("right within 2 tries", |measures| within(measures, 0)),
    MeasureRow("right within 3 tries", |measures| within(measures, 1)),
    MeasureRow("right within 5 tries", |measures| within(measures, 2)),
    MeasureRow("right within 10 tries", |measures| within(measures, 3)),
    MeasureRow("posterior of 50 % or more", |measures| certain(measures, 0)),
    MeasureRow("posterior of 90 % or more", |measures| certain(measures, 1)),
    MeasureRow("posterior of 99 % or more", |measures| certain(measures, 2)),
    MeasureRow("greatest posterior", |measures| share(measures.worst_posterior)),
    MeasureRow("alone in its size, ε unknown", |measures| share(measures.alone)),
    MeasureRow("smallest anonymity set", |measures| count(measures.smallest_set)),
];

/// All measures of what sizes give away.
fn measures(learned: &Learned) -> Document {
    let row = |MeasureRow(name, shown): &MeasureRow| {
        let kinds = learned.kinds.as_ref().map_or_else(|| NONE.to_owned(), shown);
        [(*name).to_owned(), shown(&learned.command), shown(&learned.number), kinds]
    };
    numbers(["by size", "command", "number of actions", "types of devices"], ROWS.iter().map(row))
}

/// How many commands look alike.
fn sets(sets: &[SetSizes]) -> Document {
    let row = |SetSizes { from, to, probability }: &SetSizes| {
        let range = if to - from < 0.5 { count(*from) } else { format!("{}–{}", count(*from), count(*to)) };
        [range, share(*probability)]
    };
    numbers(["commands that a size leaves possible", "of commands"], sets.iter().map(row))
}

/// The commands by their number of actions.
fn by_number(rows: &[NumberRow]) -> Document {
    let row = |row: &NumberRow| {
        let NumberRow { actions, commands, probability, sizes, alone, named } = row;
        let (commands, sizes) = (count(*commands), count(*sizes as f64));
        [actions.to_string(), share(*probability), commands, sizes, share(*alone), share(*named)]
    };
    numbers(["actions", "of commands", "different", "sizes", "alone, ε known", "named"], rows.iter().map(row))
}

/// Which commands of few actions look alike.
fn collisions(audit: &Audit, model: &Model) -> Document {
    if audit.collisions.is_empty() {
        return line("no two commands of one or two actions have the same size");
    }
    let alike = |commands: &[Vec<u32>]| {
        let names: Vec<String> = commands.iter().map(|counts| command_name(model, counts)).collect();
        paragraph(escaped(&format!("  {}", names.join(" = "))), 4)
    };
    let shown = audit.collisions.iter().take(SHOWN).flat_map(|collision| alike(&collision.commands));
    let more = match audit.collisions.len().saturating_sub(SHOWN) {
        0 => Document::new(),
        more => line(format!("  and {more} sizes more (--json lists all)")),
    };
    let heading = line("commands of one or two actions that have the same size:");
    [heading, shown.collect(), more].concat()
}

fn within(measures: &Measures, at: usize) -> String {
    measures.tries.get(at).map_or_else(|| NONE.to_owned(), |tries| share(tries.named))
}

fn certain(measures: &Measures, at: usize) -> String {
    measures.certain.get(at).map_or_else(|| NONE.to_owned(), |certain| share(certain.probability))
}

/// A share in percent. What differs from all by rounding is all.
pub(super) fn share(share: f64) -> String {
    percent(if share > 1.0 - ROUNDING { 1.0 } else { share })
}

fn optional(figure: Option<f64>) -> String {
    figure.map_or_else(|| NONE.to_owned(), |figure| format!("{figure:.3}"))
}

/// A figure with about three digits, or in powers of ten where it is very large.
fn decimals(figure: f64) -> String {
    match figure {
        figure if figure < 100.0 => format!("{figure:.2}"),
        figure if figure < 1e9 => count(figure),
        figure => format!("{figure:.1e}"),
    }
}

/// A number with its thousands apart, or in powers of ten where it is very large.
fn count(number: f64) -> String {
    if number >= 1e15 {
        return format!("{number:.1e}");
    }
    let digits = format!("{number:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_thousands_apart() {
        let shown = [0.0, 999.0, 85_932.0, 1_234_567.0, 1e16].map(count);
        assert_eq!(shown, ["0", "999", "85,932", "1,234,567", "1.0e16"]);
        assert_eq!([0.5, 12.345, 510.0, 2e10].map(decimals), ["0.50", "12.35", "510", "2.0e10"]);
    }
}
