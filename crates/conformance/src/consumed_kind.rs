//! The kinds of frame that a stage may consume.

/// The kind of frame that a stage consumes, which is its place in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumedKind {
    Nothing,
    Packets,
    Segments,
    Record,
    Command,
    Correction,
    Identification,
}

impl ConsumedKind {
    /// All kinds, in the order of the pipeline, each with a description of the stage.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Nothing, "The first stage, which reads no frames"),
        (Self::Packets, "Like flow-filter"),
        (Self::Segments, "Like record-sizer"),
        (Self::Record, "Like command-segmenter"),
        (Self::Command, "Like epsilon-corrector"),
        (Self::Correction, "Like decomposer"),
        (Self::Identification, "Like pruner"),
    ];

    /// The name of the kind in frames; `nothing` for none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Packets => "packets",
            Self::Segments => "segments",
            Self::Record => "record",
            Self::Command => "command",
            Self::Correction => "correction",
            Self::Identification => "identification",
        }
    }
}
