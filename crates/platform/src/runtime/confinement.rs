//! Confines a program to what it needs once its stages are built: the flag, and the order of the steps.

use crate::sandbox::{Access, LesserUser, Sandbox, give_up_capabilities};
use crate::telemetry::headings::MEASURING;
use crate::telemetry::log::{LogFlags, say};
use clap::Args;

use crate::runtime::ConfigureError;

/// The flag that turns the sandbox off.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct SandboxFlags {
    /// Keep the right to open any file and to make any system call, and root after a live capture is open
    #[arg(long, hide_short_help = true, help_heading = MEASURING)]
    no_sandbox: bool,
}

impl SandboxFlags {
    /// Whether there is a sandbox.
    pub fn are_on(self) -> bool {
        !self.no_sandbox
    }
}

/// Leaves root, if this process captures live, before it creates or renames files; `give` gets the user first. To be
/// called when the capture is open.
///
/// # Errors
/// [`ConfigureError`]: root cannot be left, or a folder could then not be written.
pub fn leave_root(access: &Access, give: impl FnOnce(&LesserUser)) -> Result<(), ConfigureError> {
    if !access.is_live() {
        return Ok(());
    }
    if let Some(user) = LesserUser::of_root()? {
        give(&user);
        user.enter()?;
        access.check_folders(user.name())?;
        tracing::info!(user = user.name(), "root is left");
    }
    Ok(give_up_capabilities()?)
}

/// Limits the system calls of all threads, also of those for metrics, and says once what could not be limited.
pub fn complete(sandbox: Option<Sandbox>, speaker: &str, log: &LogFlags) {
    let Some(mut sandbox) = sandbox else { return };
    sandbox.limit_calls();
    if let Some(missing) = sandbox.missing().filter(|_| !log.is_quiet()) {
        say(speaker, &missing);
    }
}
