//! What labelled captures show as text for people.

use sizeleak_evaluation::measured_leak::{MeasuredLeak, MeasuredShare};
use sizeleak_evaluation::statistics::Interval;
use sizeleak_text::escaped;

use super::model_check::{ModelCheck, ModelFigure};
use super::report::{MeasuredAudit, MeasuredSecrets, p_in_words};
use crate::command::document::{Document, numbers, paragraph, spaced};
use crate::command::figures::{NONE, percent, percent_within};

/// The report.
pub(super) fn table(report: &MeasuredAudit) -> Document {
    let sentences: Vec<&str> =
        [Some(&report.sentence), report.model_sentence.as_ref()].into_iter().flatten().map(String::as_str).collect();
    let remarks = report.remarks.iter().flat_map(|remark| paragraph(format!("- {}", escaped(remark)), 2));
    spaced([paragraph(sentences.join(" "), 0), remarks.collect(), named(report), measures(&report.by_size)])
}

/// Who names what how often.
fn named(report: &MeasuredAudit) -> Document {
    let (by_size, share) = (&report.by_size, |share: MeasuredShare| percent_within(share.share, share.interval));
    let all = |name: &str, secrets: &MeasuredSecrets, shown: &dyn Fn(&MeasuredLeak) -> String| {
        let shown = |leak: &MeasuredLeak| if leak.secrets > 1 { shown(leak) } else { NONE.to_owned() };
        let kinds = secrets.kinds.as_ref().map_or_else(|| NONE.to_owned(), shown);
        [name.to_owned(), shown(&secrets.command), shown(&secrets.number), kinds]
    };
    let nearest = |leak: &MeasuredLeak| share(leak.named);
    let mut rows = vec![
        all("by guessing, V₀", by_size, &|leak| share(leak.guessing)),
        all("by size", by_size, &nearest),
        all("  guessing at new sizes", by_size, &|leak| share(leak.frequentist)),
        all("  from all other times", by_size, &|leak| share(leak.from_others)),
        all("  by anybody, V", by_size, &|leak| range(leak.vulnerability)),
        all("by size and reply count", &report.with_reply_count, &nearest),
        all("by size and reply bytes", &report.with_reply_bytes, &nearest),
    ];
    if let Some(ModelCheck { figures: Some(figures), .. }) = &report.model {
        let of_model = |name: &str, shown: &dyn Fn(&ModelFigure) -> String| {
            [name.to_owned(), shown(&figures.command), shown(&figures.number), NONE.to_owned()]
        };
        rows.push(of_model("by size, with the model", &|figure| share(figure.named)));
        rows.push(of_model("  as the model says", &|figure| percent(figure.expected)));
        rows.push(of_model("  of all commands", &|figure| percent(figure.over_all_commands)));
    }
    numbers(["named correctly", "command", "number of actions", "types of devices"], rows)
}

/// A measure: its name, and how it is shown.
struct MeasureRow(&'static str, fn(&MeasuredLeak) -> String);

/// What there is to measure.
const COUNTS: [MeasureRow; 3] = [
    MeasureRow("labelled commands", |leak| leak.commands.to_string()),
    MeasureRow("  different", |leak| leak.secrets.to_string()),
    MeasureRow("  labelled as no other", |leak| leak.secrets_once.to_string()),
];

/// What is measured, where there are several secrets.
const FIGURES: [MeasureRow; 7] = [
    MeasureRow("  needed at least", |leak| {
        leak.fewest_commands.map_or_else(|| NONE.to_owned(), |fewest| fewest.to_string())
    }),
    MeasureRow("sizes", |leak| leak.outputs.to_string()),
    MeasureRow("sizes say nothing: p", |leak| p_in_words(&leak.independence)),
    MeasureRow("V / V₀", |leak| decimals(leak.times_guessing.interval)),
    MeasureRow("V at most, by heart", |leak| percent(leak.upper_bounds.learned_by_heart)),
    MeasureRow("V at most, by neighbours", |leak| percent(leak.upper_bounds.nearest_neighbour)),
    MeasureRow("given away, in bits", |leak| {
        let information = leak.information;
        information.interval.map_or_else(
            || NONE.to_owned(),
            |Interval { low, high }| format!("{:.2} ({low:.2}–{high:.2})", information.bits),
        )
    }),
];

/// All measures of what sizes give away.
fn measures(secrets: &MeasuredSecrets) -> Document {
    let row = |MeasureRow(name, shown): &MeasureRow, least: u64| {
        let cell = |leak: &MeasuredLeak| if leak.secrets >= least { shown(leak) } else { NONE.to_owned() };
        let kinds = secrets.kinds.as_ref().map_or_else(|| NONE.to_owned(), cell);
        [(*name).to_owned(), cell(&secrets.command), cell(&secrets.number), kinds]
    };
    let rows = COUNTS.iter().map(|counts| row(counts, 1)).chain(FIGURES.iter().map(|figures| row(figures, 2)));
    numbers(["by size", "command", "number of actions", "types of devices"], rows)
}

/// An interval in whole percents, which is not cut.
fn range(Interval { low, high }: Interval) -> String {
    format!("{:.0}–{:.0} %", (100.0 * low).floor(), (100.0 * high).ceil())
}

fn decimals(Interval { low, high }: Interval) -> String {
    if high.is_finite() { format!("{low:.1}–{high:.1}") } else { format!("≥ {low:.1}") }
}
