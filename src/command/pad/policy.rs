//! The report on one padding policy.

use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{Draw, JudgedPolicy, PaddedHome, PaddingPolicy, named_after, named_with_known_key};
use sizeleak_audit::tunnel::Tunnel;
use sizeleak_text::percent;

use super::curve::GUARD;
use super::judged::{opening, sentence, table};
use crate::command::document::{Document, paragraph, spaced};
use crate::command::failure::Failure;
use crate::command::report_format::ReportForm;

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

    pub(super) fn written(&self, form: ReportForm) -> Result<Vec<u8>, Failure> {
        Ok(form.written(self, None, || spaced(self.parts()))?)
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
