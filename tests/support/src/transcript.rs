//! What programs print, held by snapshots: `tests/snapshots`.

use std::fmt::Write;
use std::process::Output;

use crate::programs::{root, stderr};

/// Fails where a text is not that of the snapshot with this name, and shows the difference.
#[track_caller]
pub fn assert_shown(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path(root().join("tests/snapshots"));
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// What a program has printed, frames only as that word: what goes to stdout, what goes to stderr behind `!`, and an exit
/// code that is not 0.
pub fn printed(output: &Output) -> String {
    let mut text = match std::str::from_utf8(&output.stdout) {
        Ok(printed) => printed.to_owned(),
        Err(_) => "(frames)\n".to_owned(),
    };
    for line in stderr(output).lines() {
        write!(text, "! {line}").unwrap();
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    if let Some(code) = output.status.code().filter(|code| *code != 0) {
        _ = writeln!(text, "exit code {code}");
    }
    text
}
