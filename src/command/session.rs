//! What the program shares with the command that it runs: its screen, the files that its options name, and what is
//! named without an option, a file mostly: what that is, by its content.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ArgMatches;
use clap::builder::{PathBufValueParser, TypedValueParser};
use sizeleak_pipeline::Pipeline;
use sizeleak_pipeline::recording::open;
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::log::Screen;

use super::failure::usage;
use super::shared_options::PaddingOption;

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

const WRITTEN: [(&str, &str); 6] = [
    ("details", "`--details`"),
    ("output", "`--output`"),
    ("pcap", "`--pcap`"),
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
        for (id, wanted) in [("answers", "answers"), ("model", "a model"), ("profile", "a profile")] {
            paths(id).iter().try_for_each(|path| check_kind(path, id, wanted))?;
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

    /// Checks that files of a folder that a command writes are none that it reads; `role` says what each is.
    pub(super) fn check_folder(&mut self, role: &str, folder: &Path, names: &[&str]) -> Result<()> {
        let mut files = RunFiles::new();
        for name in names {
            files.writes(role, &folder.join(name));
        }
        self.check_files(files)
    }
}

pub(super) const STANDARD: &str = "standard";

/// How much of a text is looked at.
const HEAD: u64 = 1 << 16;

/// How much shows that a file is a frame stream, or no text.
const FIRST: u64 = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operand {
    /// Where it is; `-` is stdin.
    pub(super) path: PathBuf,
    pub(super) content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Packets, or what is none of the others: `capture` says what is wrong with it.
    Capture,
    Stream,
    /// Answers as Parquet, or in lines of JSON.
    Answers,
    Pipeline,
    /// What is named with an option, and is neither packets nor frames: what it is, and the option.
    ValueOf(&'static str, &'static str),
    /// It is no file, but `standard` or options of stages: how `sizeleak evaluate` names pipelines.
    Settings,
}

const PROFILE: Content = Content::ValueOf("a profile", "--profile");
const MODEL: Content = Content::ValueOf("a model", "--model");
const INVENTORY: Content = Content::ValueOf("an inventory", "--inventory");
const LABEL_MAP: Content = Content::ValueOf("a map of a log", "--label-map");
const LABELS: Content = Content::ValueOf("a file of labels", "--labels");

impl Operand {
    pub(super) fn of(path: PathBuf) -> Self {
        let content = content_of(&path);
        Self { path, content }
    }

    /// A stream of frames, also where it cannot be looked at.
    pub(super) fn stream(path: PathBuf) -> Self {
        Self { path, content: Content::Stream }
    }

    pub(super) fn parser() -> impl TypedValueParser<Value = Self> {
        PathBufValueParser::new().map(Self::of)
    }

    pub(super) fn is_profile(&self) -> bool {
        self.content == PROFILE
    }

    /// Checks that a file may be labels, or a log of what was commanded: none of the other texts that the program reads.
    pub(super) fn check_labels(path: &Path) -> Result<()> {
        let what = match content_of(path) {
            Content::ValueOf(what, option) if option != "--labels" => format!("{what}, which `{option}` names"),
            Content::Pipeline if path.is_file() => "TOML".to_owned(),
            _ => return Ok(()),
        };
        let file = path.display();
        let form = "give CSV with a column `time` and one for each action, as `sizeleak init` writes it";
        Err(usage!("{file} is {what}, and no labels: {form}"))
    }

    pub(super) fn check_place(&self) -> Result<()> {
        let Content::ValueOf(what, option) = self.content else { return Ok(()) };
        let file = self.path.display();
        Err(usage!("{file} is {what}, not a capture: name it with `{option} {file}`"))
    }
}

/// Checks that the file of an option is none that another option names.
fn check_kind(path: &Path, id: &str, wanted: &str) -> Result<()> {
    match content_of(path) {
        // A model may hold nothing but devices as yet.
        INVENTORY if id == "model" => Ok(()),
        Content::ValueOf(what, option) if option.trim_start_matches('-') != id => {
            Err(usage!("{} is {what}, which `{option}` names, and not {wanted}", path.display()))
        }
        _ => Ok(()),
    }
}

/// What a file holds. Pipes cannot be looked at without taking from them.
fn content_of(path: &Path) -> Content {
    let is_toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let by_name = if is_toml { Content::Pipeline } else { Content::Capture };
    if !path.exists() {
        let is_settings = path.to_str().is_some_and(|text| text == STANDARD || text.contains('='));
        return if is_settings { Content::Settings } else { by_name };
    }
    if !path.is_file() {
        return by_name;
    }
    // What cannot be opened is reported by whoever reads it.
    let Ok((mut input, _)) = open(Some(path)) else { return by_name };
    let mut head = Vec::new();
    _ = input.by_ref().take(FIRST).read_to_end(&mut head);
    if begins_as_frames(&head) {
        return Content::Stream;
    }
    if head.starts_with(b"PAR1") || head.starts_with(b"{") {
        return Content::Answers;
    }
    if head.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace()) {
        return Content::Capture;
    }
    _ = input.take(HEAD).read_to_end(&mut head);
    content_of_text(&String::from_utf8_lossy(&head)).unwrap_or(by_name)
}

/// Whether bytes begin with the frame `hello`, which is always the first.
fn begins_as_frames(head: &[u8]) -> bool {
    // A map of one entry, whose key is a text of five bytes in its short or its long form.
    [&b"\x81\xa5hello"[..], b"\x81\xd9\x05hello"].iter().any(|start| head.starts_with(start))
}

/// What a text is by its tables or its header, also if it has errors.
fn content_of_text(text: &str) -> Option<Content> {
    let header = text.lines().next().and_then(|line| line.split_once(',')).map_or("", |(first, _)| first.trim());
    if header.eq_ignore_ascii_case("time") {
        return Some(LABELS);
    }
    text.lines().find_map(|line| {
        let is = |starts: &[&str]| starts.iter().any(|start| line.trim_start().starts_with(start));
        if is(&["[[stage]]", "[pipeline]"]) {
            Some(Content::Pipeline)
        } else if is(&["[[action]]", "[[model]]", "overhead ="]) {
            Some(MODEL)
        } else if is(&["[[device]]"]) {
            Some(INVENTORY)
        } else if is(&["time-zone", "[[home]]"]) {
            Some(PROFILE)
        } else if is(&["[actions"]) {
            Some(LABEL_MAP)
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    #[test]
    fn options_that_name_files_are_in_a_list_unless_a_pipeline_has_them() {
        let known = |id: &str| READ.iter().chain(&WRITTEN).any(|(known, _)| *known == id);
        let command = crate::command::command();
        let options = command.get_subcommands().flat_map(clap::Command::get_arguments);
        let paths = options.filter(|option| option.get_value_parser().type_id() == TypeId::of::<PathBuf>());
        let others: BTreeSet<&str> = paths.map(|path| path.get_id().as_str()).filter(|id| !known(id)).collect();
        // A folder, and what the test of a stage has.
        assert_eq!(others, ["folder", "input", "latency_log", "pipeline"].into_iter().collect());
    }

    #[test]
    fn files_are_recognised_by_content_before_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let frames = b"\x81\xa5hello\x80".to_vec();
        let pcap = b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\x00\x01\x00\x00\x00"
            .to_vec();
        for (name, bytes, content) in [
            ("a", pcap.clone(), Content::Capture),
            ("a.toml", pcap, Content::Capture),
            ("a.pcap", frames.clone(), Content::Stream),
            ("frames.zst", zstd::encode_all(&*frames, 0).unwrap(), Content::Stream),
            ("long", b"\x81\xd9\x05hello\x80".to_vec(), Content::Stream),
            ("named", b"# mine\n\n[pipeline]\nmode = \"threads\"\n".to_vec(), Content::Pipeline),
            ("wrong.toml", b"stage = 7".to_vec(), Content::Pipeline),
            ("model.toml", b"schema = 2\noverhead = 67\n".to_vec(), MODEL),
            ("devices.toml", b"[[device]]\nname = \"plug\"\n".to_vec(), INVENTORY),
            ("labels.csv", b"time,on,off\n1,1,0\n".to_vec(), LABELS),
            ("notes.txt", b"bought on Monday\n".to_vec(), Content::Capture),
            ("empty", Vec::new(), Content::Capture),
            ("broken.zst", b"\x28\xb5\x2f\xfdnothing".to_vec(), Content::Capture),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            assert_eq!(Operand::of(path).content, content, "{name}");
        }
        for (name, content) in [
            ("none.toml", Content::Pipeline),
            ("none.pcap", Content::Capture),
            ("-", Content::Capture),
            ("standard", Content::Settings),
            ("pruner.mode=paper,pruner.keep=1", Content::Settings),
        ] {
            assert_eq!(Operand::of(name.into()).content, content, "{name}");
        }
        assert_eq!(Operand::of(folder.path().to_owned()).content, Content::Capture);
    }
}
