//! What the answers of a pipeline rest on, and what they name.

use sizeleak_model::Model;
use sizeleak_pipeline::Pipeline;

/// What the answers rest on, and what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerKind {
    pub(crate) evidence: Evidence,
    pub(crate) answer: Answer,
}

/// What the observer sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    Sizes,
    SizesAndReplies,
}

/// What the observer names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Actions,
    /// One of the kinds of command that were labelled, whose parts have no sizes.
    Kinds,
}

impl AnswerKind {
    /// The answers of a pipeline that uses these sections of a model.
    pub(crate) fn of(pipeline: &Pipeline, models: &[Model]) -> Self {
        let is_off = pipeline.option("pruner", "mode").is_some_and(|mode| mode.as_str() == Some("none"));
        let has_sizes = models.iter().any(|model| !model.actions.is_empty());
        Self {
            evidence: if pipeline.has("pruner") && !is_off { Evidence::SizesAndReplies } else { Evidence::Sizes },
            answer: if has_sizes { Answer::Actions } else { Answer::Kinds },
        }
    }

    /// The beginning of a sentence about them.
    pub(crate) fn subject(self) -> String {
        let seen = match self.evidence {
            Evidence::Sizes => "sizes",
            Evidence::SizesAndReplies => "sizes and replies",
        };
        let named = match self.answer {
            Answer::Actions => "the exact actions",
            Answer::Kinds => "the kind, as it was labelled,",
        };
        format!("An observer who sees only {seen} names {named} of")
    }
}
