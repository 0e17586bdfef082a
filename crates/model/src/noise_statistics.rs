//! Statistics of the records that are not commands: how many there are of each size, and when they occur.
//!
//! They are counted in captures with labelled commands. So how often records of a size were commands, and how often
//! they were not, determines how likely a further record of that size is a command.

use serde::{Deserialize, Serialize};

/// The largest number of record sizes that a model holds for each direction.
pub const MAX_NOISE_SIZES: usize = 512;

/// From this number of occurrences on, a behaviour of records of one size counts as regular.
pub const MIN_OCCURRENCES: u64 = 4;

const MAX_VALUE: u64 = 1 << 53;

/// Counts of labelled commands and of the other records, by size. Sizes are in the model's basis.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseStatistics {
    /// The number of labelled commands they were learned from.
    pub commands: u64,
    /// How many of these the gateway replied to.
    pub replied: u64,
    /// Estimated number of unlabelled commands for each 100 labelled ones: unsolicited records whose sizes hardly
    /// recur.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing_labels: u64,
    /// The time in milliseconds within which the service answers the gateway, if it is slow.
    pub answer_within_ms: Option<u64>,
    pub written: RecordLayout,
    /// Sizes of records to the gateway behind which a command goes on, whatever the gateway says in between.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continued: Vec<u32>,
    /// The size of a full record to the gateway, which the next record continues, if messages are split.
    pub full_to_gateway: Option<u32>,
    /// The same for records from the gateway.
    pub full_from_gateway: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_gateway: Vec<ServiceRecords>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from_gateway: Vec<GatewayRecords>,
}

/// How the service writes a command that fits into one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordLayout {
    #[default]
    Whole,
    /// As several records at once, such as head and body.
    Parts,
}

/// Records of one size to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceRecords {
    pub size: u32,
    /// The number of labelled commands that begin with such a record.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commands: u64,
    /// How many of the others answer the gateway.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answers: u64,
    /// How many of the others are unsolicited.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub alone: u64,
    /// How many of the unsolicited ones the gateway replied to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replied: u64,
    /// The period of the timer that sends most of the unsolicited ones, in milliseconds.
    pub every_ms: Option<u64>,
    /// The silence after which most of the unsolicited ones are sent, in milliseconds.
    pub after_silence_ms: Option<u64>,
    /// How early or late that timer is, in milliseconds, besides the jitter of a network.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: u64,
    /// How many of the unsolicited ones follow that period or silence.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub on_beat: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayRecords {
    pub size: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub times: u64,
    /// How many of them follow a labelled command.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replies: u64,
    /// How many were answered by a record that is not a command.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answered: u64,
    /// The size of these answers, if most have the same size.
    pub by: Option<u32>,
    /// The number of labelled commands in place of the answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub commands: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl GatewayRecords {
    pub fn is_answered(&self) -> bool {
        self.answered.saturating_mul(3) >= self.times
    }

    /// Whether such records are telemetry: frequent, and mostly not after commands.
    pub fn is_telemetry(&self) -> bool {
        self.times >= MIN_OCCURRENCES && self.replies.saturating_mul(2) < self.times
    }

    /// Whether commands arrive in place of answers to such records, as they do if the gateway polls.
    pub fn brings_commands(&self) -> bool {
        self.commands >= MIN_OCCURRENCES && self.commands.saturating_mul(4) >= self.answered
    }
}

impl NoiseStatistics {
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let most = self.to_gateway.len().max(self.from_gateway.len()).max(self.continued.len());
        if most > MAX_NOISE_SIZES {
            return Some("[noise] has too many sizes: at most 512 for each direction");
        }
        let is_sorted = self.to_gateway.is_sorted_by(|a, b| a.size < b.size)
            && self.from_gateway.is_sorted_by(|a, b| a.size < b.size);
        if !is_sorted {
            return Some("the sizes of [noise] must be in ascending order, each once");
        }
        let whole = [self.commands, self.replied, self.missing_labels, self.answer_within_ms.unwrap_or_default()];
        let of_service = self.to_gateway.iter().flat_map(|kind| {
            let times = [kind.every_ms, kind.after_silence_ms, Some(kind.jitter_ms)].map(Option::unwrap_or_default);
            [kind.commands, kind.answers, kind.alone, kind.replied, kind.on_beat].into_iter().chain(times)
        });
        let of_gateway =
            self.from_gateway.iter().flat_map(|kind| [kind.times, kind.replies, kind.answered, kind.commands]);
        if whole.into_iter().chain(of_service).chain(of_gateway).any(|figure| figure > MAX_VALUE) {
            return Some("[noise] has counts out of bounds");
        }
        let is_part = self.replied <= self.commands
            && self.to_gateway.iter().all(|kind| kind.replied <= kind.alone && kind.on_beat <= kind.alone);
        (!is_part).then_some("a part in [noise] is greater than the whole")
    }

    /// The table as TOML, with a line for each size. `parent` is empty, or ends with a dot.
    pub(crate) fn to_toml(&self, parent: &str) -> String {
        let mut text = format!(
            "\n# Records beside the labelled commands, by size: how many answered the gateway, how many came alone \
             and on\n# which beat, how many commands have that size; and what the gateway sends.\n[{parent}noise]\n",
        );
        let plain = Self { to_gateway: Vec::new(), from_gateway: Vec::new(), ..self.clone() };
        // Counts and names can always be represented in TOML.
        text.push_str(&toml::to_string(&plain).unwrap_or_default());
        write_list(&mut text, "to_gateway", &self.to_gateway);
        write_list(&mut text, "from_gateway", &self.from_gateway);
        text
    }
}

fn write_list(text: &mut String, name: &str, entries: &[impl Serialize]) {
    text.push_str(name);
    text.push_str(" = [\n");
    for entry in entries {
        let mut line = String::new();
        if entry.serialize(toml::ser::ValueSerializer::new(&mut line)).is_ok() {
            text.push_str("    ");
            text.push_str(&line);
            text.push_str(",\n");
        }
    }
    text.push_str("]\n");
}
