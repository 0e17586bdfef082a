//! What a report is made from: files told apart by content, with their digests.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;
use sizeleak_learning::digest_captures;
use sizeleak_platform::storage::RunFiles;
use sizeleak_report::document::{Figure, Section, Value};

use super::Arguments;
use crate::command::answers_input::AnswersInput;
use crate::command::document::quoted;
use crate::command::failure::usage;
use crate::command::labelled_captures::LabelledCaptures;
use crate::command::operand::{Content, Operand};

#[derive(Debug)]
pub(super) struct Given {
    pub(super) answers: AnswersInput,
    answer_files: Vec<PathBuf>,
    pub(super) profile: Option<PathBuf>,
    /// Whether there are labelled captures, or streams in their place.
    pub(super) has_captures: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Capture,
    Answers,
    Profile,
}

impl Given {
    pub(super) fn take_from(captures: &mut LabelledCaptures) -> Result<Self> {
        let labelled = captures.are_labelled();
        let operands = std::mem::take(&mut captures.traffic.operands);
        let with_roles: Vec<(Operand, Role)> =
            operands.into_iter().map(|operand| (operand.clone(), role(&operand, labelled))).collect();
        // Labels are about captures. Where there are none, they are about saved streams.
        let has_captures =
            with_roles.iter().any(|(_, role)| *role == Role::Capture) || captures.traffic.names_streams();
        let (mut answers, mut profiles) = (Vec::new(), Vec::new());
        for (operand, role) in with_roles {
            match role {
                Role::Profile => profiles.push(operand.path),
                Role::Answers if has_captures || !labelled => answers.push(operand.path),
                Role::Answers | Role::Capture => captures.traffic.operands.push(operand),
            }
        }
        let has_captures = has_captures || !captures.traffic.operands.is_empty();
        captures.traffic.check()?;
        if has_captures && !labelled {
            return Err(usage!(
                "captures need labels: name them with `--labels FILE`; without labels, name the answers that `sizeleak run \
                 CAPTURE --model model.toml -o answers.frames` writes"
            ));
        }
        if labelled && !has_captures {
            return Err(usage!("`--labels` needs the captures that they are about: name them"));
        }
        if let [one, other, ..] = profiles.as_slice() {
            let (one, other) = (one.display(), other.display());
            return Err(usage!("{one} and {other} are both profiles: a report is about one home"));
        }
        let profile = profiles.into_iter().next();
        Ok(Self { answers: AnswersInput::of(answers.clone()), answer_files: answers, profile, has_captures })
    }

    pub(super) fn files(&self, arguments: &Arguments) -> Vec<(&'static str, PathBuf)> {
        let mut files: Vec<(&'static str, PathBuf)> = Vec::new();
        let captures = &arguments.captures;
        if self.has_captures {
            files.extend(captures.traffic.captures().into_iter().map(|path| ("the capture", path)));
            files.extend(captures.traffic.streams().into_iter().map(|path| ("the saved stream", path)));
            files.extend(captures.labels.clone().map(|path| ("the labels", path)));
        }
        files.extend(arguments.audited.files());
        files.extend(self.answer_files.iter().map(|path| ("the answers", path.clone())));
        files.extend(self.profile.iter().map(|path| ("the profile", path.clone())));
        files
    }

    pub(super) fn named(&self, arguments: &Arguments) -> RunFiles {
        let mut files = RunFiles::new();
        self.files(arguments).iter().for_each(|(role, path)| files.reads(role, path));
        files
    }

    /// What the report was made from, by whom and how.
    pub(super) fn provenance(&self, arguments: &Arguments) -> Result<Section> {
        let mut rows = Vec::new();
        for (role, path) in self.files(arguments) {
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            // Of stdin and folders there is none.
            let is_file = path.is_file();
            let digest = if is_file { digest_captures(std::slice::from_ref(&path))? } else { Vec::new() };
            let digest = digest.into_iter().next().map_or(Value::Unknown, |digest| digest.sha256.into());
            rows.push([role.trim_start_matches("the ").into(), name.into(), digest]);
        }
        let files = Figure::new("files", "what | name | SHA-256", rows).titled("Files", "");
        let text = format!(
            "Written by sizeleak {}. The same files and options give the same bytes.",
            env!("CARGO_PKG_VERSION")
        );
        Ok(Section::new("provenance", vec![text, format!("Command line: `{}`", command_line())], vec![files]))
    }
}

fn role(operand: &Operand, labelled: bool) -> Role {
    match operand.content {
        _ if operand.path.is_dir() => {
            if labelled {
                Role::Capture
            } else {
                Role::Answers
            }
        }
        _ if operand.is_profile() => Role::Profile,
        Content::Stream | Content::Answers => Role::Answers,
        // Nothing can be looked at without taking from it.
        Content::Capture if operand.path == Path::new("-") && !labelled => Role::Answers,
        _ => Role::Capture,
    }
}

/// The command line of this process without its output, which the report does not depend on.
fn command_line() -> String {
    let mut arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let mut words = vec!["sizeleak".to_owned()];
    while let Some(argument) = arguments.next() {
        if ["-o", "-w", "--output"].contains(&&*argument) {
            arguments.next();
        } else if !["-o", "-w", "--output="].iter().any(|option| argument.starts_with(option)) {
            words.push(quoted(&argument));
        }
    }
    words.join(" ")
}
