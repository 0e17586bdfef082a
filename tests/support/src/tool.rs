//! Programs beyond Cargo that tests run.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// One sentence with its standard error, if it cannot be started or fails.
pub fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{program}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
    }
}
