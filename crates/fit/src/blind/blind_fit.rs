//! What is known of commands beforehand, what a fit finds in them, or why there is none.

use thiserror::Error;

use super::length_fields::LengthFields;

#[derive(Debug, Clone, PartialEq)]
pub struct BlindAction {
    /// Its name, if labels give it one.
    pub name: Option<String>,
    /// Its most probable size in bytes, at least 1.
    pub size: i64,
    /// The smallest and the largest size in bytes that the commands leave open.
    pub interval: [i64; 2],
    /// The size of its reply in bytes; `None` if it sends none, or if replies were not observed.
    pub reply: Option<i64>,
    /// Its share of all actions.
    pub frequency: f64,
}

/// Another explanation that the commands hardly distinguish from the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alternative {
    /// Its size of a command without actions, in bytes.
    pub overhead: i64,
    pub length_fields: LengthFields,
    pub actions: usize,
    /// By how much its log-likelihood is below that of the best, in nats.
    pub difference: f64,
}

/// Two names that the labels would fit nearly as well the other way round.
#[derive(Debug, Clone, PartialEq)]
pub struct UncertainNames {
    pub names: [String; 2],
    /// The probability that they are the other way round, at most 0.5.
    pub probability: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BlindFit {
    /// |ac|: the size of a short command without actions, in bytes.
    pub overhead: i64,
    /// Other explanations that the commands hardly distinguish from this, most likely first.
    pub alternatives: Vec<Alternative>,
    /// How the length of the body shows in the size beyond itself.
    pub length_fields: LengthFields,
    /// Bytes that encryption adds to a command, where sizes are sizes on the wire and length fields show it; else 0.
    pub record_bytes: i64,
    /// The values of ε in bytes with their probabilities; the most probable is 0.
    pub epsilons: Vec<(i64, f64)>,
    /// The actions, ordered by size, then by reply. None is empty, and each has a size of at least 1 byte.
    pub actions: Vec<BlindAction>,
    pub uncertain_names: Vec<UncertainNames>,
    /// The share of commands that nothing of this explains.
    pub outliers: f64,
    /// The log-likelihood of the commands that were used, in nats.
    pub log_likelihood: f64,
    /// The probability that a reply is lost.
    pub lost: f64,
    /// How many replies of a command belong to something else, on average.
    pub foreign: f64,
    pub commands: usize,
    /// Commands that were not used: too large, or with replies of rare sizes.
    pub dropped: usize,
    /// How many more commands would settle what is open; `None` if nothing is, or if that cannot be estimated.
    pub more_commands_needed: Option<usize>,
}

impl BlindFit {
    /// The bytes that length fields add to a command of this size, in bytes, relative to short messages.
    pub fn grown(&self, size: i64) -> i64 {
        self.length_fields.grown(size.saturating_sub(self.record_bytes))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Its size in bytes: of the plaintext, or on the wire if the cipher suite is not known.
    pub size: i64,
    /// The sizes of its single replies in bytes, in any order; `None` if they were not all listed.
    pub replies: Option<Vec<i64>>,
    /// Its label, if it has one: how often each named action occurs. As long as the list of names.
    pub counts: Option<Vec<u32>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BlindFitError {
    #[error("{commands} commands are too few to learn sizes without labels; {needed} are needed at least")]
    TooFewCommands { commands: usize, needed: usize },
    #[error(
        "the commands have only {sizes} different sizes, which do not show what an action adds; {needed} are needed"
    )]
    TooFewSizes { sizes: usize, needed: usize },
    #[error("no sizes of actions explain the sizes of the commands: {explained} of {commands} are explained")]
    NotAdditive { explained: usize, commands: usize },
    #[error("the commands do not determine the sizes: {}", open_overheads(.overheads, *.more_commands))]
    Undetermined {
        /// The sizes of a command without actions that are left, most likely first, in bytes.
        overheads: Vec<i64>,
        /// How many more commands would settle it, if that can be estimated.
        more_commands: Option<usize>,
    },
    #[error("a label has {counts} counts for {names} names of actions")]
    LabelLength { counts: usize, names: usize },
}

fn open_overheads(overheads: &[i64], more: Option<usize>) -> String {
    let mut overheads = overheads.to_vec();
    overheads.sort_unstable();
    let list: Vec<String> = overheads.iter().map(ToString::to_string).collect();
    let more = more.map_or_else(
        || "label one command of each action, or capture the replies".to_owned(),
        |more| format!("about {more} more commands would settle it, or labels of single commands"),
    );
    format!("the overhead |ac| stays open: it may be {} bytes; {more}", list.join(" or "))
}
