//! What is named without an option, a file mostly: what it is, by its content.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::{PathBufValueParser, TypedValueParser};
use sizeleak_pipeline::recording::open;

use super::failure::usage;

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

    pub(super) fn check_place(&self) -> Result<()> {
        let Content::ValueOf(what, option) = self.content else { return Ok(()) };
        let file = self.path.display();
        Err(usage!("{file} is {what}, not a capture: name it with `{option} {file}`"))
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
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
