//! What can be drawn, and from what.

use clap::ValueEnum;

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PictureKind {
    /// The commands and deviations of a stream over time
    Timeline,
    /// The sizes of commands of one action and more, and how many commands share each
    Sizes,
    /// How often answers are right, by the probability that they state
    Calibration,
    /// How precision grows with the number of labels
    Curve,
    /// What padding gives away against what it costs
    Padding,
    /// Which actions are taken for which others
    Confusion,
    /// What the home of a profile usually does: hours by weekdays, and routines
    Profile,
    /// How long each stage takes for a frame
    Latency,
}

impl PictureKind {
    /// Its name in a sentence.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Sizes => "figure of sizes",
            Self::Calibration => "figure of calibration",
            Self::Curve => "learning curve",
            Self::Padding => "figure of padding",
            Self::Confusion => "figure of confusions",
            Self::Profile => "profile",
            Self::Latency => "figure of latencies",
        }
    }

    /// What it is drawn from, with the command that writes it.
    pub(super) fn source(self) -> &'static str {
        match self {
            Self::Timeline => "frames, JSON lines or Parquet: `sizeleak run … -o answers.frames` writes them",
            Self::Sizes => "a model: `sizeleak learn … -o model.toml` writes it",
            Self::Calibration | Self::Confusion => "an evaluation: `sizeleak evaluate … -o evaluation.json` writes it",
            Self::Curve => "a curve as JSON: `sizeleak learn … --curve --format json > curve.json` writes it",
            Self::Padding => "a curve as JSON: `sizeleak pad --model model.toml -o padding.json` writes it",
            Self::Profile => "a profile: `sizeleak profile answers.frames -o home.profile.toml` writes it",
            Self::Latency => "frames to their end: `sizeleak run … -o answers.frames` writes them",
        }
    }
}
