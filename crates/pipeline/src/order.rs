//! Checks the order of stages: each consumes what the stages before it make.

use crate::ConfigError;
use crate::stage::PipelineStage;

/// Checks that every standard stage finds its input. What other stages make is unknown, so anything may follow them.
/// The error comes with the line of the stage.
pub(crate) fn check(stages: &[PipelineStage]) -> Result<(), (Option<usize>, ConfigError)> {
    if stages.is_empty() {
        return Err((None, ConfigError::usage("a pipeline without any `[[stage]]`".into())));
    }
    let mut made: Option<&str> = None;
    for (index, stage) in stages.iter().enumerate() {
        let Some(entry) = stage.entry() else {
            made = None;
            continue;
        };
        let first = index == 0;
        let fault = match (entry.consumes, made) {
            (Some(_), None) if first => {
                format!("`{}` cannot be the first stage: `capture` or a program of your own is", entry.name)
            }
            (None, _) if !first => format!("`{}` reads no frames: it can only be the first stage", entry.name),
            (Some(consumed), Some(made)) if consumed != made => {
                format!("`{}` works on frames of kind `{consumed}`, but the stages before it make `{made}`", entry.name)
            }
            _ => {
                made = Some(entry.makes);
                continue;
            }
        };
        return Err((stage.line, ConfigError::usage(fault)));
    }
    Ok(())
}
