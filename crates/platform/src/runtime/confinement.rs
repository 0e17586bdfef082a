//! Confines a program to what it needs once its stages are built: the flag, and the order of the steps.

use crate::sandbox::Sandbox;
use crate::telemetry::headings::MEASURING;
use crate::telemetry::log::say;
use clap::Args;

/// The flag that turns the sandbox off.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct SandboxFlags {
    /// Keep the right to open any file and to make any system call
    #[arg(long, hide_short_help = true, help_heading = MEASURING)]
    no_sandbox: bool,
}

impl SandboxFlags {
    pub fn are_on(self) -> bool {
        !self.no_sandbox
    }
}

/// Limits the system calls of all threads, also of those for metrics, and says once what could not be limited.
pub fn complete(sandbox: Option<Sandbox>, speaker: &str) {
    let Some(mut sandbox) = sandbox else { return };
    sandbox.limit_calls();
    if let Some(missing) = sandbox.missing() {
        say(speaker, &missing);
    }
}
