//! Which stages can follow which: each works on what those before it make.

use super::{ConfigError, Step, Work};

/// Checks that every stage finds what it works on. What a foreign stage makes is not known, so anything may follow one.
pub(super) fn check(stages: &[Step]) -> Result<(), (Option<usize>, ConfigError)> {
    if stages.is_empty() {
        return Err((None, ConfigError::usage("a pipeline without a single `[[stage]]`".into())));
    }
    let mut made: Option<&str> = None;
    for (step, at) in stages.iter().zip(0..) {
        let Work::Known { entry, .. } = &step.work else {
            made = None;
            continue;
        };
        let first = at == 0;
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
        return Err((step.line, ConfigError::usage(fault)));
    }
    Ok(())
}
