//! What a padding policy gives away and costs, in words and as a table.

use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{
    CountermeasureError, Countermeasures, HomeTraffic, JudgedPolicy, PaddedHome, PaddingPolicy, ReplyForm,
};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_inference::channel::Measures;
use sizeleak_report::document::NONE;
use sizeleak_text::percent;

use crate::command::document::{Document, numbers, paragraph};

pub(super) fn sentence(judged: &JudgedPolicy, home: &PaddedHome, padding: &str) -> String {
    let (padded, unpadded) = (&judged.by_size.command, &home.unpadded.command);
    format!(
        "With {padding}, an observer {} names the exact command in {} of cases (without padding: {}; guessing: {}); it \
         adds {} to the bytes of commands.",
        observer(home.tunnel(), "who sees only sizes"),
        percent(padded.named),
        percent(unpadded.named),
        percent(unpadded.guessing),
        percent(judged.added_share)
    )
}

/// Who observes, in words: somebody behind a tunnel, or else without.
pub(super) fn observer(tunnel: Option<&Tunnel>, without: &str) -> String {
    tunnel.map_or_else(|| without.to_owned(), |tunnel| format!("of a tunnel's packets ({})", tunnel.title()))
}

pub(super) fn opening(sentence: &str, prior: &str) -> Vec<Document> {
    vec![paragraph(sentence, 0), paragraph(format!("prior: {prior}"), 7)]
}

/// What is learned without padding and with it, and what it costs.
pub(super) fn table(judged: &JudgedPolicy, home: &PaddedHome) -> Document {
    let (before, after) = (&home.unpadded, &judged.by_size);
    let of_kinds =
        |learned: &Learned| learned.kinds.as_ref().map_or_else(|| NONE.to_owned(), |kinds| percent(kinds.named));
    let row =
        |name: &str, shown: fn(&Measures) -> String| [name.to_owned(), shown(&before.command), shown(&after.command)];
    let command_bytes = home.command_bytes;
    let rows = [
        row("command named", |measures| percent(measures.named)),
        row("  of guessing", |measures| format!("× {:.2}", measures.times_guessing)),
        ["number of actions named".to_owned(), percent(before.number.named), percent(after.number.named)],
        ["types of devices named".to_owned(), of_kinds(before), of_kinds(after)],
        row("bits given away", |measures| format!("{:.2}", measures.information_bits)),
        row("sizes seen", |measures| measures.outputs.to_string()),
        row("alone in its size", |measures| percent(measures.alone.abs())),
        row("smallest anonymity set", |measures| format!("{:.0}", measures.smallest_set)),
        row("greatest posterior", |measures| percent(measures.worst_posterior)),
        [
            "bytes of a command".to_owned(),
            format!("{command_bytes:.1}"),
            format!("{:.1}", command_bytes + judged.added_bytes),
        ],
        ["  added".to_owned(), "0.0 %".to_owned(), percent(judged.added_share)],
        [
            format!("MB more a day, of {} commands", home.commands_per_day),
            "0".to_owned(),
            megabytes(judged.megabytes_a_day),
        ],
    ];
    numbers([if home.tunnel().is_some() { "by packets" } else { "by size" }, "without padding", "padded"], rows)
}

/// Megabytes, with three significant digits below one.
pub(super) fn megabytes(megabytes: f64) -> String {
    if megabytes < 1.0 { format!("{megabytes:.4}") } else { format!("{megabytes:.1}") }
}

/// How often an observer of size and replies names the exact command, whose size alone is padded; or replies, too.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct NamedWithReplies {
    /// With replies as the gateway sends them.
    as_they_are: f64,
    one_size: f64,
}

impl NamedWithReplies {
    /// Under a policy; `None` if replies say nothing, or too much to compute.
    pub(crate) fn new(traffic: &HomeTraffic, policy: &PaddingPolicy) -> Result<Option<Self>, CountermeasureError> {
        let named = |replies| {
            let effect =
                traffic.effect(&Countermeasures { policy: policy.clone(), replies, ..Countermeasures::NONE })?;
            Ok(effect.with_replies.map(|leak| leak.command.named))
        };
        let (as_they_are, one_size) = (named(ReplyForm::AsTheyAre)?, named(ReplyForm::OneSize)?);
        Ok(as_they_are.zip(one_size).map(|(as_they_are, one_size)| Self { as_they_are, one_size }))
    }

    pub(crate) fn sentence(self) -> String {
        format!(
            "Replies are not padded by it: an observer who sees them, too, names the exact command in {} of cases while \
             replies are as they are, and in {} if all have one size (`--replies one-size`).",
            percent(self.as_they_are),
            percent(self.one_size)
        )
    }
}
