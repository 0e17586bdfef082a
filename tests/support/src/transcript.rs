//! What programs print, held by snapshots: `tests/snapshots`.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};

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

/// Runs of programs, one after another: the command line, and what is [`printed`].
#[derive(Default)]
pub struct Transcript {
    text: String,
    folders: Vec<(String, &'static str)>,
}

impl Transcript {
    /// Shows a folder, whose name differs from run to run, as this word.
    #[must_use]
    pub fn of_folder(folder: &Path, word: &'static str) -> Self {
        Self { text: String::new(), folders: vec![(folder.display().to_string(), word)] }
    }

    /// Runs a program and adds what it prints.
    pub fn run(&mut self, command: &mut Command) -> Output {
        let output = command.output().unwrap();
        self.add(command, &output);
        output
    }

    /// Adds what a program has said of a fault: what it read and wrote before, and counted, may differ from run to run.
    pub fn add_fault(&mut self, command: &Command, output: &Output) {
        let lines = stderr(output);
        let faults: Vec<&str> = lines.lines().filter(|line| !line.contains("notices: ")).collect();
        let stderr = faults.join("\n").into_bytes();
        self.add(command, &Output { status: output.status, stdout: Vec::new(), stderr });
    }

    /// Adds what a program has printed, frames only as that word.
    pub fn add(&mut self, command: &Command, output: &Output) {
        let words = command.get_args().map(|word| word.to_string_lossy());
        let program = Path::new(command.get_program()).file_name().unwrap().to_string_lossy();
        let line = [program].into_iter().chain(words).collect::<Vec<_>>().join(" ");
        let mut text = format!("$ {line}\n{}", printed(output));
        for (folder, word) in &self.folders {
            text = text.replace(folder, word);
        }
        self.text.push_str(&text);
        self.text.push('\n');
    }

    /// Fails where this is not the snapshot with this name.
    #[track_caller]
    pub fn assert_shown(&self, name: &str) {
        assert_shown(name, &self.text);
    }
}
