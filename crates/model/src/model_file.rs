//! The model file, `model.toml`: reading, checking, and writing it in a layout for people. A file holds one model, or
//! several as sections `[[model]]`.

mod toml_text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sizeleak_text::{read_text, stand_in};
use thiserror::Error;

use self::toml_text::{quoted, write_kinds, write_single_replies, write_table};
use crate::action::MAX_MESSAGE_SIZE;
use crate::inventory::{MAX_ACTIONS, toml_fault};
use crate::neighbours::MAX_TUPLES;
use crate::{
    Action, Basis, CaptureDigest, Device, EpsilonTuple, FitMethod, Inventory, InventoryError, Kinds, LearnedPadding,
    MAX_SEEN, Model, Neighbours, NoiseStatistics, Prior, Provenance, ReplyBytesModel, ReplyCountModel, ReplyWindows,
    Scope, SingleReplies, SizeBlocks, Smoothing,
};

/// The newest schema version of the model file. Files without keys of this version are written as version 1, which
/// older programs read.
pub const SCHEMA: u32 = 2;

/// The schema version of files with one section and without a scope.
const FIRST_SCHEMA: u32 = 1;

/// The most sections of a model file, and of all files together.
pub(crate) const MAX_SECTIONS: usize = 256;

/// The largest model file that is read, in bytes. TOML takes about fifty times as much memory while it is read.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A longer file without a word that each model has is not parsed.
const MAX_UNKNOWN_BYTES: usize = 1 << 20;

const MAX_CAPTURES: usize = 65_536;
const MAX_TIMES: i64 = 1 << 40;
const MAX_NEIGHBOURS: usize = 100_000;
const MAX_STRENGTH: f64 = 1e9;
const MAX_RECORD_OVERHEAD: u32 = 16_640;
const MAX_REPLIES: f64 = 1e6;
const MAX_PADDING: u32 = 4096;
const MAX_WARNINGS: usize = 64;
const MAX_WARNING_BYTES: usize = 4096;

#[derive(Debug, Error)]
pub enum ModelError {
    #[error("{}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}: {fault}", file.display())]
    Invalid { file: PathBuf, fault: ModelFault },
    #[error(
        "{first} and {second} are both about {scope}: use one of them, or give each a [scope] with its own `gateway` \
         and `services`"
    )]
    Overlap { first: String, second: String, scope: String },
    #[error("the model files have {0} sections, the limit is {MAX_SECTIONS}: leave some files out")]
    TooManySections(usize),
}

#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ModelFault {
    #[error("{0}")]
    Syntax(String),
    #[error("this is not a model: the key `schema` is missing")]
    NoSchema,
    #[error(
        "schema {0} is newer than this sizeleak supports ({SCHEMA}): use a newer sizeleak, or learn the model again"
    )]
    NewerSchema(i64),
    #[error("there is no schema {0}, this sizeleak supports {SCHEMA}: learn the model again")]
    UnknownSchema(String),
    #[error("{0}")]
    Bounds(String),
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    #[error("section {number} ({scope}): {fault}")]
    Section {
        /// The section's number in the file, from 1.
        number: usize,
        scope: String,
        fault: Box<ModelFault>,
    },
    #[error(
        "the sections {first} and {second} are both about {scope}: leave one of them out, or give each a [model.scope] \
         with its own `gateway` and `services`"
    )]
    Overlap {
        /// The number of the first section, from 1.
        first: usize,
        second: usize,
        scope: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionsFile {
    #[serde(rename = "schema")]
    _schema: u32,
    #[serde(rename = "model")]
    sections: Vec<ModelFile>,
}

/// The keys of a file with one section, and of a section.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    #[serde(rename = "schema")]
    schema: Option<u32>,
    #[serde(default)]
    scope: Scope,
    overhead: i64,
    k: usize,
    #[serde(default)]
    strength: f64,
    /// `[size, ε, times]`.
    tuples: Vec<[i64; 3]>,
    #[serde(default, rename = "action")]
    actions: Vec<Action>,
    #[serde(default, rename = "device")]
    devices: Vec<Device>,
    kinds: Option<Kinds>,
    prior: Option<Prior>,
    replies: ReplyCountModel,
    reply_bytes: Option<ReplyBytesModel>,
    single_replies: Option<SingleReplies>,
    segmenter: Option<ReplyWindows>,
    noise: Option<NoiseStatistics>,
    learned: LearnedFile,
}

/// The keys of [`Provenance`], which do not say yet whether they belong together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnedFile {
    method: FitMethod,
    commands: u64,
    version: String,
    basis: BasisName,
    cipher_suite: Option<String>,
    record_overhead: Option<[u32; 2]>,
    #[serde(default, rename = "capture")]
    captures: Vec<CaptureDigest>,
    padding: Option<LearnedPadding>,
    block_rest: Option<u32>,
    #[serde(default = "certain")]
    certainty: f64,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    found_with: BTreeMap<String, toml::Table>,
    #[serde(default)]
    seen: Vec<u32>,
}

fn certain() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum BasisName {
    Plaintext,
    Wire,
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<toml::Value>,
    /// Present in a file with several sections.
    model: Option<toml::Value>,
}

impl Model {
    /// Reads a model file with one section, of at most 16 MiB.
    pub fn read(file: &Path) -> Result<Self, ModelError> {
        read_file(file, Self::from_toml)
    }

    /// Reads a model from text with one section.
    pub fn from_toml(text: &str) -> Result<Self, ModelFault> {
        let mut sections = read_sections(text)?;
        match (sections.pop(), sections.len()) {
            (Some(model), 0) => Ok(model),
            (_, others) => bounds(format!("one model is needed here, this file has {} sections", others + 1)),
        }
    }

    pub fn to_toml(&self) -> String {
        let mut text = format!("{TITLE}schema = {}\n", self.schema());
        // Writing to a string cannot fail.
        let _infallible = self.write_toml(&mut text, "");
        text
    }

    /// The lowest schema version that has all keys of this model.
    fn schema(&self) -> u32 {
        let has_new_keys = !self.scope.is_empty()
            || self.kinds.is_some()
            || self.reply_windows.is_some()
            || self.single_replies.is_some()
            || self.prior.as_ref().is_some_and(|prior| !prior.recurring.is_empty())
            || self.actions.iter().any(Action::varies)
            || self.learned.padding.is_some()
            || self.learned.block_rest.is_some()
            || self.learned.certainty < 1.0
            || !self.learned.warnings.is_empty()
            || !self.learned.seen.is_empty();
        if has_new_keys { SCHEMA } else { FIRST_SCHEMA }
    }

    /// Writes all keys but the schema. The names of tables begin with `parent`, which is empty or ends with a dot.
    fn write_toml(&self, text: &mut String, parent: &str) -> std::fmt::Result {
        let Smoothing { k, strength } = self.smoothing;
        write!(text, "overhead = {}\n\n", self.overhead)?;
        text.push_str(
            "# Neighbours asked for ε, and how many labelled commands weigh as much as what all of them have.\n",
        );
        write!(text, "k = {k}\nstrength = {strength:?}\n\n")?;
        text.push_str("# [size, what actions and overhead leave of it (ε), how many labelled commands]\ntuples = [\n");
        for same_size in self.neighbours.tuples().chunk_by(|a, b| a.size == b.size) {
            let tuple = |tuple: &EpsilonTuple| format!("[{}, {}, {}],", tuple.size, tuple.epsilon, tuple.times);
            writeln!(text, "    {}", same_size.iter().map(tuple).collect::<Vec<_>>().join(" "))?;
        }
        text.push_str("]\n");
        if !self.scope.is_empty() {
            text.push_str("\n# The gateway and the services (server names, or addresses with ports) that it is for.\n");
            write_table(text, parent, "scope", &self.scope);
        }
        for action in &self.actions {
            write!(text, "\n[[{parent}action]]\nname = {}\nsize = {}\n", quoted(&action.name), action.size)?;
            if action.varies() {
                let share = |(size, share): &(i64, f64)| format!("[{size}, {share:?}]");
                let shares: Vec<String> = action.sizes.iter().map(share).collect();
                writeln!(text, "sizes = [{}]", shares.join(", "))?;
            }
        }
        for device in self.inventory.iter().flat_map(|inventory| &inventory.devices) {
            let actions: Vec<String> = device.actions.iter().map(|action| quoted(action)).collect();
            write!(text, "\n[[{parent}device]]\nname = {}\ncount = {}\n", quoted(&device.name), device.count)?;
            writeln!(text, "actions = [{}]", actions.join(", "))?;
        }
        if let Some(kinds) = &self.kinds {
            write_kinds(text, parent, kinds)?;
        }
        if let Some(prior) = &self.prior {
            text.push_str("\n# Shares of commands with 1, 2, 3… actions; shares of the actions, in the order above.\n");
            write_table(text, parent, "prior", prior);
        }
        text.push_str("\n# Records in reply = fixed + per_action · actions, less a share missing, and some surplus.\n");
        write_table(text, parent, "replies", &self.replies);
        if let Some(bytes) = &self.reply_bytes {
            text.push_str(
                "\n# Bytes of the replies = fixed + per_reply · replies + Σ per_action · its number, \
                 and a deviation.\n",
            );
            write_table(text, parent, "reply_bytes", bytes);
        }
        if let Some(single) = &self.single_replies {
            write_single_replies(text, parent, single)?;
        }
        if let Some(windows) = &self.reply_windows {
            text.push_str(
                "\n# Replies come within this time after a command, most of them sooner, and end when the gateway is silent \
                 for this long.\n",
            );
            write_table(text, parent, "segmenter", windows);
        }
        if let Some(noise) = &self.noise {
            text.push_str(&noise.to_toml(parent));
        }
        text.push('\n');
        write_table(text, parent, "learned", &self.learned);
        Ok(())
    }
}

const TITLE: &str = "# What sizeleak learned of a gateway. Sizes are bytes.\n";

pub(crate) fn read_file<T>(file: &Path, parse: impl FnOnce(&str) -> Result<T, ModelFault>) -> Result<T, ModelError> {
    let text = read_text(file, MAX_FILE_BYTES).map_err(|source| ModelError::Read { file: file.to_owned(), source })?;
    let parsed = if let Some(what) = stand_in(text.as_bytes()) {
        Err(ModelFault::Syntax(format!("this is {what}")))
    } else {
        parse(&text)
    };
    let parsed = parsed.map_err(|fault| ModelError::Invalid { file: file.to_owned(), fault })?;
    tracing::info!(file = %file.display(), "the model is read");
    Ok(parsed)
}

/// Reads the sections of a file; a flat file has one.
pub(crate) fn read_sections(text: &str) -> Result<Vec<Model>, ModelFault> {
    let syntax = |error| ModelFault::Syntax(toml_fault(text, &error));
    if text.len() > MAX_UNKNOWN_BYTES && !text.contains("schema") {
        return Err(ModelFault::NoSchema);
    }
    if let Some(line) = text.lines().position(|line| line.trim_start().starts_with("[model]")) {
        return Err(ModelFault::Syntax(format!("line {}: [model], where a section of a model is [[model]]", line + 1)));
    }
    let start = toml::from_str::<SchemaOnly>(text)
        .map_err(|error| ModelFault::Syntax(format!("this is not a model: {}", toml_fault(text, &error))))?;
    match start.schema {
        Some(toml::Value::Integer(schema)) if (FIRST_SCHEMA.into()..=SCHEMA.into()).contains(&schema) => {}
        Some(toml::Value::Integer(schema)) if schema > i64::from(SCHEMA) => {
            return Err(ModelFault::NewerSchema(schema));
        }
        Some(schema) => return Err(ModelFault::UnknownSchema(schema.to_string())),
        None => return Err(ModelFault::NoSchema),
    }
    if start.model.is_none() {
        return Ok(vec![toml::from_str::<ModelFile>(text).map_err(syntax)?.into_model()?]);
    }
    let sections = toml::from_str::<SectionsFile>(text).map_err(syntax)?.sections;
    if sections.is_empty() || sections.len() > MAX_SECTIONS {
        return bounds(format!("a model file has 1 to {MAX_SECTIONS} [[model]], this one has {}", sections.len()));
    }
    let section = |(number, section): (usize, ModelFile)| {
        let scope = section.scope.to_string();
        let model = match section.schema {
            Some(_) => bounds("`schema` is a key of the whole file, not of a section"),
            None => section.into_model(),
        };
        model.map_err(|fault| ModelFault::Section { number, scope, fault: Box::new(fault) })
    };
    (1..).zip(sections).map(section).collect()
}

pub(crate) fn write_sections<'a>(models: impl IntoIterator<Item = &'a Model>) -> String {
    let mut text = format!("{TITLE}schema = {SCHEMA}\n");
    for model in models {
        text.push_str("\n[[model]]\n");
        // Writing to a string cannot fail.
        let _infallible = model.write_toml(&mut text, "model.");
    }
    text
}

impl ModelFile {
    fn into_model(self) -> Result<Model, ModelFault> {
        self.check()?;
        let tuple = |[size, epsilon, times]: &[i64; 3]| EpsilonTuple {
            size: *size,
            epsilon: *epsilon,
            times: times.unsigned_abs(),
        };
        let neighbours = Neighbours::new(self.tuples.iter().map(tuple));
        let model = Model {
            scope: self.scope,
            overhead: self.overhead,
            neighbours: neighbours.map_or_else(|| bounds("a model needs at least one tuple"), Ok)?,
            smoothing: Smoothing { k: self.k, strength: self.strength },
            actions: self.actions,
            kinds: self.kinds,
            inventory: Some(Inventory { devices: self.devices }).filter(|inventory| !inventory.devices.is_empty()),
            prior: self.prior,
            replies: self.replies,
            reply_bytes: self.reply_bytes,
            single_replies: self.single_replies,
            reply_windows: self.segmenter,
            noise: self.noise,
            learned: self.learned.try_into()?,
        };
        model.limits_of_all()?;
        Ok(model)
    }

    /// Checks the bounds of all values: model files are untrusted input.
    fn check(&self) -> Result<(), ModelFault> {
        within("`overhead`", self.overhead)?;
        self.scope.fault().map_or(Ok(()), bounds)?;
        if (self.actions.is_empty() && self.kinds.is_none()) || self.actions.len() > MAX_ACTIONS {
            return bounds(format!(
                "a model has 1 to {MAX_ACTIONS} [[action]], or [kinds]; this one has {} [[action]]",
                self.actions.len()
            ));
        }
        let of_kinds = self.kinds.as_ref().and_then(Kinds::fault);
        of_kinds.or_else(|| self.segmenter.and_then(ReplyWindows::fault)).map_or(Ok(()), bounds)?;
        let mut names = BTreeSet::new();
        for action in &self.actions {
            within(&format!("the action `{}`", action.name), action.size)?;
            action.fault().map_or(Ok(()), bounds)?;
            if !names.insert(&action.name) {
                return bounds(format!("the action `{}` is listed twice", action.name));
            }
        }
        if !(1..=MAX_NEIGHBOURS).contains(&self.k) {
            return bounds(format!("`k` must be 1 to {MAX_NEIGHBOURS}, it is {}", self.k));
        }
        if !(0.0..=MAX_STRENGTH).contains(&self.strength) {
            return bounds(format!("`strength` must be 0 to {MAX_STRENGTH}, it is {}", self.strength));
        }
        if self.tuples.len() > MAX_TUPLES {
            return bounds(format!("a model has at most {MAX_TUPLES} tuples, this one has {}", self.tuples.len()));
        }
        for [size, epsilon, times] in &self.tuples {
            within("a tuple's size", *size)?;
            within("a tuple's ε", *epsilon)?;
            if !(1..=MAX_TIMES).contains(times) {
                return bounds(format!("the tuple [{size}, {epsilon}, {times}] cannot occur {times} times"));
            }
        }
        let actions = self.actions.len();
        let faults = [
            self.prior.as_ref().and_then(|prior| prior.fault(actions)),
            self.reply_bytes.as_ref().and_then(|bytes| bytes.fault(actions)),
            self.noise.as_ref().and_then(NoiseStatistics::fault),
            self.single_replies.as_ref().and_then(|single| single.fault(actions)),
        ];
        faults.into_iter().flatten().try_for_each(bounds)?;
        let replies = [self.replies.fixed, self.replies.per_action, self.replies.missing, self.replies.surplus];
        if !replies.iter().all(|figure| figure.abs() <= MAX_REPLIES)
            || self.replies.per_action < 0.0
            || !(0.0..=1.0).contains(&self.replies.missing)
            || self.replies.surplus < 0.0
        {
            return bounds("[replies] has values out of bounds");
        }
        Ok(())
    }
}

impl TryFrom<LearnedFile> for Provenance {
    type Error = ModelFault;

    fn try_from(file: LearnedFile) -> Result<Self, ModelFault> {
        let basis = match (file.basis, file.cipher_suite, file.record_overhead) {
            (BasisName::Plaintext, Some(cipher_suite), Some(record_overhead)) => {
                let [least, most] = record_overhead;
                if least > most || most > MAX_RECORD_OVERHEAD {
                    return bounds(format!(
                        "`record_overhead` [{least}, {most}] is not a range of bytes that a cipher suite adds"
                    ));
                }
                Basis::Plaintext { cipher_suite, record_overhead }
            }
            (BasisName::Wire, None, None) => Basis::Wire,
            (BasisName::Plaintext, ..) => {
                return bounds("basis \"plaintext\" needs `cipher_suite` and `record_overhead`");
            }
            (BasisName::Wire, ..) => return bounds("basis \"wire\" has no `cipher_suite` and no `record_overhead`"),
        };
        if file.captures.len() > MAX_CAPTURES {
            return bounds(format!(
                "a model has at most {MAX_CAPTURES} captures, this one has {}",
                file.captures.len()
            ));
        }
        let is_digest =
            |digest: &str| digest.len() == 64 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if let Some(capture) = file.captures.iter().find(|capture| !is_digest(&capture.sha256)) {
            return bounds(format!("the sha256 of capture `{}` is not 64 lower-case hexadecimal digits", capture.name));
        }
        match &file.padding {
            Some(LearnedPadding::Modulo(bytes)) if !(2..=MAX_PADDING).contains(bytes) => {
                return bounds(format!("`padding` must be 2 to {MAX_PADDING} bytes, or a policy"));
            }
            Some(LearnedPadding::Policy(policy)) => {
                policy.check().map_err(|error| ModelFault::Bounds(format!("`padding`: {error}")))?;
            }
            _ => (),
        }
        if file.warnings.len() > MAX_WARNINGS || file.warnings.iter().any(|text| text.len() > MAX_WARNING_BYTES) {
            return bounds(format!("`warnings` has at most {MAX_WARNINGS} texts of {MAX_WARNING_BYTES} bytes"));
        }
        if !(0.0..=1.0).contains(&file.certainty) {
            return bounds(format!("`certainty` is a probability: {} is none", file.certainty));
        }
        if file.seen.len() > MAX_SEEN {
            return bounds(format!("`seen` has at most {MAX_SEEN} commands"));
        }
        let LearnedFile { method, commands, version, captures, padding, block_rest, certainty, .. } = file;
        let (warnings, found_with, seen) = (file.warnings, file.found_with, file.seen);
        let learned = Self {
            method,
            commands,
            version,
            basis,
            captures,
            padding,
            block_rest,
            certainty,
            warnings,
            found_with,
            seen,
        };
        match (learned.block_rest, learned.blocks()) {
            (Some(_), None) => bounds("`block_rest` is for sizes in blocks, which these are not"),
            (Some(rest), Some(SizeBlocks { bytes, .. })) if u64::from(rest) >= bytes => {
                bounds(format!("`block_rest` is what sizes leave modulo {bytes} bytes: {rest} is not less"))
            }
            _ => Ok(learned),
        }
    }
}

fn within(what: &str, size: i64) -> Result<(), ModelFault> {
    if size.unsigned_abs() < MAX_MESSAGE_SIZE.unsigned_abs() {
        return Ok(());
    }
    bounds(format!("{what} is {size} bytes, which no message can have"))
}

fn bounds<T>(fault: impl Into<String>) -> Result<T, ModelFault> {
    Err(ModelFault::Bounds(fault.into()))
}
