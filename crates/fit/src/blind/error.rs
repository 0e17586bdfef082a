//! Why sizes cannot be learned.

use thiserror::Error;

/// Why sizes cannot be learned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BlindFitError {
    /// There are too few commands to start with.
    #[error("{commands} commands are too few to learn sizes without labels; {needed} are needed at least")]
    TooFewCommands {
        /// Commands that can be used.
        commands: usize,
        /// Commands that are needed at least.
        needed: usize,
    },
    /// The sizes of commands do not vary enough to tell actions from the rest of a command.
    #[error(
        "the commands have only {sizes} different sizes, which do not show what an action adds; {needed} are needed"
    )]
    TooFewSizes {
        /// Different sizes of commands.
        sizes: usize,
        /// Different sizes that are needed at least.
        needed: usize,
    },
    /// No sizes of actions explain the commands.
    #[error("no sizes of actions explain the sizes of the commands: {explained} of {commands} are explained")]
    NotAdditive {
        /// Commands that the best fit explains.
        explained: usize,
        /// Commands that were used.
        commands: usize,
    },
    /// Several sizes explain the commands as well.
    #[error("the commands do not determine the sizes: {}", open_overheads(.overheads, *.more_commands))]
    Undetermined {
        /// The sizes of a command without actions that are left, most likely first, in bytes.
        overheads: Vec<i64>,
        /// How many more commands would settle it, if that can be estimated.
        more_commands: Option<usize>,
    },
    /// A label has more or fewer counts than there are names.
    #[error("a label has {counts} counts for {names} names of actions")]
    LabelLength {
        /// Counts of the label.
        counts: usize,
        /// Names of actions.
        names: usize,
    },
}

fn open_overheads(overheads: &[i64], more: Option<usize>) -> String {
    let list: Vec<String> = overheads.iter().map(ToString::to_string).collect();
    let more = more.map_or_else(
        || "label one command of each action, or capture the replies".to_owned(),
        |more| format!("about {more} more commands would settle it, or labels of single commands"),
    );
    format!("a command without actions may have {} bytes; {more}", list.join(" or "))
}
