//! What a padding policy gives away and costs, in words and as a table.

use anyhow::Result;
use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{
    CountermeasureError, Countermeasures, Draw, HomeTraffic, JudgedPolicy, PaddedHome, PaddingPolicy, ReplyForm,
    named_after, named_with_known_key,
};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_inference::channel::Measures;
use sizeleak_report::document::NONE;
use sizeleak_text::percent;

use crate::command::document::{Document, numbers, paragraph, spaced};
use crate::command::report_format::ReportForm;

/// What the column of detection says.
pub(super) const GUARD: &str = "Attacks found: by `sizeleak detect` with the home's profile, within its budget of false alarms, in \
    simulated homes; the mean over kinds of attack. It sees what an observer sees: what padding hides from the one, it \
    hides from the other. A detector inside the gateway is not affected.";

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

/// Commands of a kind after which random padding is judged.
const OBSERVATIONS: [u32; 3] = [2, 10, 50];

#[derive(Debug, Serialize)]
pub(super) struct PolicyReport<'a> {
    schema: u32,
    sentence: String,
    prior: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<&'a Tunnel>,
    policy: &'a PaddingPolicy,
    commands_per_day: f64,
    command_bytes: f64,
    padded: JudgedPolicy,
    unpadded: &'a Learned,
    repeated: Vec<Repeated>,
    /// How often commands are named under keyed padding by an observer who has learned where the key sends each.
    named_with_known_key: Option<f64>,
    /// What the home's own detector finds; absent unless it is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    attacks_found: Option<AttacksFound>,
    #[serde(skip)]
    home: &'a PaddedHome,
}

/// The shares of attacks that the home's own detector finds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct AttacksFound {
    pub(super) unpadded: f64,
    pub(super) padded: f64,
}

/// How often a command is named after several that were the same.
#[derive(Debug, Serialize)]
struct Repeated {
    observations: u32,
    named: f64,
}

impl<'a> PolicyReport<'a> {
    pub(super) fn new(
        home: &'a PaddedHome,
        policy: &'a PaddingPolicy,
        prior: &'a str,
        attacks_found: Option<AttacksFound>,
    ) -> Self {
        let padded = JudgedPolicy::new(home, policy);
        let repeated = match policy {
            PaddingPolicy::Random { most, draw: Draw::Independent } if home.tunnel().is_none() => OBSERVATIONS
                .iter()
                .map(|observations| Repeated {
                    observations: *observations,
                    named: named_after(home.rows(), *most, *observations),
                })
                .collect(),
            policy if policy.draw() == Some(Draw::Independent) => {
                vec![Repeated { observations: 2, named: home.padded_channel(policy).named_after_two() }]
            }
            _ => Vec::new(),
        };
        Self {
            schema: 1,
            sentence: sentence(&padded, home, &format!("padding {policy}")),
            prior,
            tunnel: home.tunnel(),
            policy,
            commands_per_day: home.commands_per_day,
            command_bytes: home.command_bytes,
            unpadded: &home.unpadded,
            named_with_known_key: (policy.draw() == Some(Draw::Keyed) && home.tunnel().is_none())
                .then(|| named_with_known_key(&home.groups, policy)),
            padded,
            repeated,
            attacks_found,
            home,
        }
    }

    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>> {
        form.written(self, None, || spaced(self.parts()))
    }

    fn parts(&self) -> Vec<Document> {
        let mut parts = opening(&self.sentence, self.prior);
        parts.push(table(&self.padded, self.home));
        if let Some(AttacksFound { unpadded, padded }) = self.attacks_found {
            let found = format!(
                "With this padding, {} of attacks are found (without: {}).",
                percent(padded),
                percent(unpadded)
            );
            parts.push(paragraph(format!("{found} {GUARD}"), 0));
        }
        if !self.repeated.is_empty() {
            let after = |repeated: &Repeated| format!("{} after {}", percent(repeated.named), repeated.observations);
            let after: Vec<String> = self.repeated.iter().map(after).collect();
            let warning = format!(
                "This padding is drawn anew for every message, so it averages out: of the same command sent again and \
                 again, the observer names {}. Padding drawn by a key and the command (keyed-random) does not.",
                after.join(", ")
            );
            parts.push(paragraph(warning, 0));
        }
        if let Some(named) = self.named_with_known_key {
            let warning = format!(
                "The same command always has the same padding, so repetitions tell nothing more. But an observer who has \
                 learned from labelled commands of this very gateway where its key sends them names {}.",
                percent(named)
            );
            parts.push(paragraph(warning, 0));
        }
        parts
    }
}
