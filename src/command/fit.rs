//! What a command makes of a model that does not fit, or is for something else.

use std::process::ExitCode;

use anyhow::anyhow;
use sizeleak_pipeline::ModelFit;
use sizeleak_platform::telemetry::log::say;

use super::failure::Failure;

/// Fails where the model fits nothing, or was asked of nothing; says so where it does not fit some flows.
pub(super) fn check_fit(fit: ModelFit) -> Result<ExitCode, Failure> {
    match fit {
        ModelFit::All => {}
        ModelFit::Some { .. } => say("note", &fit.to_string()),
        ModelFit::None { .. } | ModelFit::Elsewhere { .. } => return Err(Failure::with_code(1, anyhow!("{fit}"))),
    }
    Ok(ExitCode::SUCCESS)
}
