//! What the program shares with the command that it runs: the files that its options name, and its screen.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ArgMatches;
use sizeleak_pipeline::Pipeline;
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::log::Screen;

use super::learning_options::PaddingOption;
use super::operand::{Content, Operand};

/// The options that name files to read, with what these are for people.
const READ: [(&str, &str); 16] = [
    ("add", "`--add`"),
    ("answers", "the answers"),
    ("captures", "the capture"),
    ("detect", "the scenario"),
    ("file", "the stream"),
    ("from", "the saved stream"),
    ("inventory", "the inventory"),
    ("label_map", "`--label-map`"),
    ("labels", "the labels"),
    ("model", "the model"),
    ("operands", "the saved stream"),
    ("plan", "`--plan`"),
    ("policy", "`--policy`"),
    ("profile", "the profile"),
    ("scenario", "the scenario"),
    ("sequence", "the sequence"),
];

const WRITTEN: [(&str, &str); 5] = [
    ("details", "`--details`"),
    ("output", "`--output`"),
    ("state", "`--state`"),
    ("suggest", "`--suggest`"),
    ("table_files", "`--table`"),
];

const WITH_FOLDERS: [&str; 4] = ["archive", "docs", "record", "simulate"];

pub(crate) struct Session {
    files: RunFiles,
    pub(super) screen: Screen,
}

impl Session {
    /// Of a subcommand and its options.
    pub(super) fn of(name: &str, options: &ArgMatches, screen: Screen) -> Result<Self> {
        let mut files = RunFiles::new();
        let paths = |id: &str| -> Vec<PathBuf> {
            let paths = options.try_get_many::<PathBuf>(id).ok().flatten().into_iter().flatten().cloned();
            let operands = options.try_get_many::<Operand>(id).ok().flatten().into_iter().flatten();
            let streams = operands.filter(|operand| operand.content == Content::Stream);
            paths.chain(streams.map(|operand| operand.path.clone())).collect()
        };
        for (id, role) in READ {
            // A profile may be replaced by itself with more.
            let read = paths(id).into_iter().filter(|path| id != "add" || !paths("output").contains(path));
            read.for_each(|path| files.reads(role, &path));
        }
        for id in ["padding", "policy", "what_if"] {
            let padding = options.try_get_one::<PaddingOption>(id).ok().flatten();
            padding.and_then(PaddingOption::file).into_iter().for_each(|path| files.reads("the padding policy", path));
        }
        if options.try_contains_id("file").is_ok_and(|is_named| !is_named) {
            files.reads_stdin();
        }
        for (id, role) in WRITTEN.into_iter().filter(|(id, _)| *id != "output" || !WITH_FOLDERS.contains(&name)) {
            for path in paths(id) {
                files.writes(role, &path);
            }
        }
        // It may be a file.
        if !options.try_contains_id("output").unwrap_or(false) {
            files.writes("stdout", Path::new("-"));
        }
        files.check()?;
        Ok(Self { files, screen })
    }

    pub(super) fn check(&mut self, pipeline: &Pipeline) -> Result<()> {
        self.check_files(pipeline.files(None))
    }

    pub(super) fn check_files(&mut self, files: RunFiles) -> Result<()> {
        self.files.extend(files);
        Ok(self.files.check()?)
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn options_that_name_files_are_in_a_list_unless_a_pipeline_has_them() {
        let known = |id: &str| READ.iter().chain(&WRITTEN).any(|(known, _)| *known == id);
        let command = crate::command::command();
        let options = command.get_subcommands().flat_map(clap::Command::get_arguments);
        let paths = options.filter(|option| option.get_value_parser().type_id() == TypeId::of::<PathBuf>());
        let others: BTreeSet<&str> = paths.map(|path| path.get_id().as_str()).filter(|id| !known(id)).collect();
        // A folder, and what the simulator and the test of a stage have.
        assert_eq!(others, ["folder", "input", "latency_log", "pcap", "pipeline"].into_iter().collect());
    }
}
