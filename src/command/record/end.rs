//! Why a recording ends.

use sizeleak_recording::Stop;

/// Why a recording ends.
pub(super) enum End {
    Decided(Stop),
    LabelsComplete,
    MaxTime,
    Interrupted,
}

impl End {
    /// Why, in words, and whether that is no interruption.
    pub(super) fn in_words(&self) -> (String, bool) {
        match self {
            Self::Decided(Stop::Settled) => {
                ("all sizes are certain and explain the commands held back".to_owned(), true)
            }
            Self::Decided(Stop::OffTogether) => (
                "more commands would not help: sizes explain the commands held back, but all may be off by the same few \
                 bytes, as this home has no command that shows where length fields grow"
                    .to_owned(),
                true,
            ),
            Self::Decided(Stop::NoGain { tied }) if tied.is_empty() => (
                "more commands would not help: sizes are certain, but do not explain the commands held back".to_owned(),
                true,
            ),
            Self::Decided(Stop::NoGain { tied }) => {
                (format!("more commands would not help: {} stay open", tied.join(", ")), true)
            }
            Self::Decided(Stop::WithoutSums(cause)) => (format!("more commands would not help: {cause}"), true),
            Self::Decided(Stop::MaxCommands) => ("as many commands as `--max-commands` allows".to_owned(), true),
            Self::LabelsComplete => ("the commands that sizes need are sent".to_owned(), true),
            Self::MaxTime => ("`--max-time` is over".to_owned(), true),
            Self::Interrupted => ("interrupted".to_owned(), false),
        }
    }
}
