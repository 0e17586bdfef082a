//! The model file, `model.toml`: its form, what it may claim, and how it is laid out to be read by a person.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::fit::LARGEST_SIZE;
use crate::{
    Action, Basis, CaptureDigest, Device, EpsilonTuple, FitMethod, Inventory, InventoryError, Model, Neighbours,
    NoiseStatistics, Prior, Provenance, ReplyBytesModel, ReplyCountModel, Smoothing, syntax,
};

/// The version of the model file.
pub const SCHEMA: u32 = 1;

const MOST_ACTIONS: usize = 4096;
const MOST_CAPTURES: usize = 65_536;
const MOST_TIMES: i64 = 1 << 40;
const MOST_NEIGHBOURS: usize = 100_000;
const GREATEST_STRENGTH: f64 = 1e9;
const LARGEST_RECORD_OVERHEAD: u32 = 16_640;

/// The figures of replies that make sense.
const MOST_REPLIES: f64 = 1e6;

/// What is wrong with a model's text.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum ModelFault {
    /// It is no TOML, or not in the form of a model.
    #[error("{0}")]
    Syntax(String),
    /// It does not say its version.
    #[error("this is no model: the key `schema` is missing")]
    NoSchema,
    /// It was written by a later sizeleak.
    #[error("schema {0} is newer than this sizeleak knows ({SCHEMA}): use a newer sizeleak, or learn the model again")]
    NewerSchema(i64),
    /// A version there never was.
    #[error("there is no schema {0}, this sizeleak knows {SCHEMA}: learn the model again")]
    UnknownSchema(String),
    /// A figure no model can have.
    #[error("{0}")]
    Bounds(String),
    /// Its inventory is at odds with itself or with the actions.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
}

/// The form of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    #[serde(rename = "schema")]
    _schema: u32,
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
    prior: Option<Prior>,
    replies: ReplyCountModel,
    reply_bytes: Option<ReplyBytesModel>,
    noise: Option<NoiseStatistics>,
    learned: LearnedFile,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnedFile {
    method: FitMethod,
    commands: u64,
    version: String,
    basis: BasisName,
    #[serde(skip_serializing_if = "Option::is_none")]
    cipher_suite: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_overhead: Option<[u32; 2]>,
    #[serde(default, rename = "capture", skip_serializing_if = "Vec::is_empty")]
    captures: Vec<CaptureDigest>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BasisName {
    Plaintext,
    Wire,
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<toml::Value>,
}

impl Model {
    /// Reads a model from text.
    ///
    /// # Errors
    /// [`ModelFault`].
    pub fn from_toml(text: &str) -> Result<Self, ModelFault> {
        let schema = toml::from_str::<SchemaOnly>(text)
            .map_err(|error| ModelFault::Syntax(format!("this is no model: {}", syntax::fault(text, &error))))?;
        match schema.schema {
            Some(toml::Value::Integer(schema)) if schema == i64::from(SCHEMA) => {}
            Some(toml::Value::Integer(schema)) if schema > i64::from(SCHEMA) => {
                return Err(ModelFault::NewerSchema(schema));
            }
            Some(schema) => return Err(ModelFault::UnknownSchema(schema.to_string())),
            None => return Err(ModelFault::NoSchema),
        }
        let file: ModelFile = toml::from_str(text).map_err(|error| ModelFault::Syntax(syntax::fault(text, &error)))?;
        file.check()?;
        let tuple = |[size, epsilon, times]: &[i64; 3]| EpsilonTuple {
            size: *size,
            epsilon: *epsilon,
            times: times.unsigned_abs(),
        };
        let neighbours = Neighbours::new(file.tuples.iter().map(tuple));
        let model = Self {
            overhead: file.overhead,
            neighbours: neighbours.map_err(|error| ModelFault::Bounds(error.to_string()))?,
            smoothing: Smoothing { k: file.k, strength: file.strength },
            actions: file.actions,
            inventory: Some(Inventory { devices: file.devices }).filter(|inventory| !inventory.devices.is_empty()),
            prior: file.prior,
            replies: file.replies,
            reply_bytes: file.reply_bytes,
            noise: file.noise,
            learned: file.learned.try_into()?,
        };
        model.limits()?;
        Ok(model)
    }

    /// The text of the model file.
    pub fn to_toml(&self) -> String {
        let mut text = String::from("# What sizeleak learned of a gateway. Sizes are bytes.\n");
        let Smoothing { k, strength } = self.smoothing;
        line(&mut text, format_args!("schema = {SCHEMA}\noverhead = {}\n\n", self.overhead));
        text.push_str(
            "# Neighbours asked for ε, and how many labelled commands weigh as much as what all of them have.\n",
        );
        line(&mut text, format_args!("k = {k}\nstrength = {strength:?}\n\n"));
        text.push_str("# [size, what actions and overhead leave of it (ε), how many labelled commands]\ntuples = [\n");
        for same_size in self.neighbours.tuples().chunk_by(|a, b| a.size == b.size) {
            let tuple = |tuple: &EpsilonTuple| format!("[{}, {}, {}],", tuple.size, tuple.epsilon, tuple.times);
            line(&mut text, format_args!("    {}\n", same_size.iter().map(tuple).collect::<Vec<_>>().join(" ")));
        }
        text.push_str("]\n");
        for action in &self.actions {
            line(&mut text, format_args!("\n[[action]]\nname = {}\nsize = {}\n", quoted(&action.name), action.size));
        }
        for device in self.inventory.iter().flat_map(|inventory| &inventory.devices) {
            let actions: Vec<String> = device.actions.iter().map(|action| quoted(action)).collect();
            line(&mut text, format_args!("\n[[device]]\nname = {}\ncount = {}\n", quoted(&device.name), device.count));
            line(&mut text, format_args!("actions = [{}]\n", actions.join(", ")));
        }
        if let Some(prior) = &self.prior {
            text.push_str("\n# Shares of commands with 1, 2, 3… actions; shares of the actions, in the order above.\n");
            let prior = toml::Table::from_iter([("prior".to_owned(), table(prior))]);
            line(&mut text, format_args!("{prior}"));
        }
        text.push_str("\n# Records in reply = fixed + per_action · actions, less a share missing, and some surplus.\n");
        let replies = toml::Table::from_iter([("replies".to_owned(), table(&self.replies))]);
        line(&mut text, format_args!("{replies}"));
        if let Some(bytes) = &self.reply_bytes {
            text.push_str(
                "\n# Bytes of the replies = fixed + per_reply · replies + Σ per_action · its number, and a deviation.\n",
            );
            let bytes = toml::Table::from_iter([("reply_bytes".to_owned(), table(bytes))]);
            line(&mut text, format_args!("{bytes}"));
        }
        if let Some(noise) = &self.noise {
            text.push_str(&noise.to_toml());
        }
        let learned = toml::Table::from_iter([("learned".to_owned(), table(&LearnedFile::from(&self.learned)))]);
        line(&mut text, format_args!("\n{learned}"));
        text
    }
}

impl ModelFile {
    /// Checks what a file may claim: a model comes from outside too.
    fn check(&self) -> Result<(), ModelFault> {
        within("`overhead`", self.overhead)?;
        if self.actions.is_empty() || self.actions.len() > MOST_ACTIONS {
            return bounds(format!("a model has 1 to {MOST_ACTIONS} [[action]], this one {}", self.actions.len()));
        }
        let mut names = BTreeSet::new();
        for action in &self.actions {
            within(&format!("the action `{}`", action.name), action.size)?;
            if action.size <= 0 {
                return bounds(format!("the action `{}` must be 1 byte long at least", action.name));
            }
            if !names.insert(&action.name) {
                return bounds(format!("the action `{}` stands there twice", action.name));
            }
        }
        if !(1..=MOST_NEIGHBOURS).contains(&self.k) {
            return bounds(format!("`k` must be 1 to {MOST_NEIGHBOURS}, it is {}", self.k));
        }
        if !(0.0..=GREATEST_STRENGTH).contains(&self.strength) {
            return bounds(format!("`strength` must be 0 to {GREATEST_STRENGTH}, it is {}", self.strength));
        }
        for [size, epsilon, times] in &self.tuples {
            within("a tuple's size", *size)?;
            within("a tuple's ε", *epsilon)?;
            if !(1..=MOST_TIMES).contains(times) {
                return bounds(format!("the tuple [{size}, {epsilon}, {times}] cannot be there {times} times"));
            }
        }
        if let Some(fault) = self.prior.as_ref().and_then(|prior| prior.fault(self.actions.len())) {
            return bounds(fault.to_owned());
        }
        let of_bytes = self.reply_bytes.as_ref().and_then(|bytes| bytes.fault(self.actions.len()));
        if let Some(fault) = of_bytes.or_else(|| self.noise.as_ref().and_then(NoiseStatistics::fault)) {
            return bounds(fault.to_owned());
        }
        let replies = [self.replies.fixed, self.replies.per_action, self.replies.missing, self.replies.surplus];
        if !replies.iter().all(|figure| figure.abs() <= MOST_REPLIES)
            || self.replies.per_action < 0.0
            || !(0.0..=1.0).contains(&self.replies.missing)
            || self.replies.surplus < 0.0
        {
            return bounds("the figures of [replies] are no numbers of replies".to_owned());
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
                if least > most || most > LARGEST_RECORD_OVERHEAD {
                    return bounds(format!("`record_overhead` [{least}, {most}] is no range of bytes a cipher adds"));
                }
                Basis::Plaintext { cipher_suite, record_overhead }
            }
            (BasisName::Wire, None, None) => Basis::Wire,
            (BasisName::Plaintext, ..) => {
                return bounds("basis \"plaintext\" needs `cipher_suite` and `record_overhead`".to_owned());
            }
            (BasisName::Wire, ..) => {
                return bounds("basis \"wire\" has no `cipher_suite` and no `record_overhead`".to_owned());
            }
        };
        if file.captures.len() > MOST_CAPTURES {
            return bounds(format!("a model has {MOST_CAPTURES} captures at most, this one {}", file.captures.len()));
        }
        let is_digest =
            |digest: &str| digest.len() == 64 && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if let Some(capture) = file.captures.iter().find(|capture| !is_digest(&capture.sha256)) {
            return bounds(format!("the sha256 of capture `{}` is not 64 lower-case hexadecimal digits", capture.name));
        }
        let LearnedFile { method, commands, version, captures, .. } = file;
        Ok(Self { method, commands, version, basis, captures })
    }
}

impl From<&Provenance> for LearnedFile {
    fn from(learned: &Provenance) -> Self {
        let (basis, cipher_suite, record_overhead) = match &learned.basis {
            Basis::Plaintext { cipher_suite, record_overhead } => {
                (BasisName::Plaintext, Some(cipher_suite.clone()), Some(*record_overhead))
            }
            Basis::Wire => (BasisName::Wire, None, None),
        };
        Self {
            method: learned.method,
            commands: learned.commands,
            version: learned.version.clone(),
            basis,
            cipher_suite,
            record_overhead,
            captures: learned.captures.clone(),
        }
    }
}

fn within(what: &str, size: i64) -> Result<(), ModelFault> {
    if size.unsigned_abs() < LARGEST_SIZE.unsigned_abs() {
        return Ok(());
    }
    bounds(format!("{what} is {size} bytes, which no message is"))
}

fn bounds<T>(fault: String) -> Result<T, ModelFault> {
    Err(ModelFault::Bounds(fault))
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _written = text.write_fmt(line);
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A part of the model as TOML; the parts are plain data, which TOML always holds.
fn table(part: &impl Serialize) -> toml::Value {
    toml::Value::try_from(part).unwrap_or_else(|_| toml::Value::Table(toml::Table::new()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::model;

    #[test]
    fn the_file_is_laid_out_to_be_read() {
        let text = model().to_toml();
        let first = text.lines().find(|line| !line.starts_with('#')).unwrap();
        assert_eq!(first, "schema = 1");
        assert!(text.contains("    [100, 0, 2], [100, 1, 1],\n    [150, -1, 1],\n"), "{text}");
        assert!(text.contains("actions = [\"on\", "), "{text}");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let changed = |from: &str, to: &str| {
            let text = model().to_toml();
            assert!(text.contains(from), "{from:?} is not in {text}");
            Model::from_toml(&text.replacen(from, to, 1)).unwrap_err().to_string()
        };
        assert!(changed("schema = 1", "schema = 2").contains("schema 2 is newer than this sizeleak knows (1): "));
        assert!(changed("schema = 1", "schema = 0").contains("no schema 0"));
        assert!(changed("schema = 1", "schema = \"x\"").contains("no schema \"x\""));
        assert!(changed("schema = 1", "").contains("`schema` is missing"));
        assert!(changed("size = 40", "size = 0").contains("1 byte long"));
        assert!(changed("size = 40", "size = 40\nsise = 1").contains("unknown field `sise`"));
        assert!(changed("overhead = 60", "overhead = -9223372036854775808").contains("no message"));
        assert!(changed("k = 3", "k = 0").contains("`k` must be"));
        for wrong in ["-1.0", "nan", "1e10"] {
            assert!(
                changed("strength = 30.0", &format!("strength = {wrong}")).contains("`strength` must be"),
                "{wrong}"
            );
        }
        assert!(changed("[100, 0, 2]", "[100, 0, 99999999999999]").contains("99999999999999 times"));
        assert!(changed("[100, 0, 2]", "[100, 0, -1]").contains("-1 times"));
        for figure in ["numbers = [0.5", "decay = 0.5", "shares = [0.75", "concentration = 9.0"] {
            let key = figure.split_inclusive(['=', '[']).next().unwrap_or(figure);
            let open = if figure.contains('[') { "[" } else { "" };
            for wrong in ["nan", "-1.0", "1e300", "0.0"] {
                assert!(changed(figure, &format!("{key} {open}{wrong}")).contains("[prior]"), "{figure} {wrong}");
            }
        }
        assert!(changed("shares = [0.75, ", "shares = [").contains("each [[action]]"));
        for figure in ["nan", "inf", "-1.0", "1e300"] {
            assert!(changed("per_action = 1.0", &format!("per_action = {figure}")).contains("[replies]"), "{figure}");
            assert!(changed("odd = 0.1", &format!("odd = {figure}")).contains("[reply_bytes]"), "{figure}");
        }
        assert!(changed("actions = [\"on\", ", "actions = [").contains("no device"));
        assert!(changed("record_overhead = [17, 18]", "record_overhead = [18, 17]").contains("no range"));
        assert!(changed("basis = \"plaintext\"", "basis = \"wire\"").contains("has no `cipher_suite`"));
        assert!(changed("sha256 = \"0", "sha256 = \"X").contains("hexadecimal"));
        assert!(changed("commands = ", "comands = ").contains("unknown field `comands`"));
        assert!(Model::from_toml("\0").unwrap_err().to_string().contains("no model"));
    }

    prop_compose! {
        fn any_model()(
            names in prop::collection::btree_set(".{1,8}", 1..5),
            sizes in prop::collection::vec(1i64..1 << 31, 5),
            tuples in prop::collection::vec((-99i64..1 << 31, -9i64..9, 1u64..99), 1..20),
            replies in [0.0f64..10.0, 0.0..10.0, 0.0..1.0, 0.0..10.0],
            (overhead, k, strength, count) in (-99i64..1 << 31, 1usize..200, 0.0f64..1e6, 0u32..9),
            (cipher, name) in (prop::option::of(".{0,9}"), ".{0,9}"),
            method in prop::sample::select(vec![FitMethod::Paper, FitMethod::Robust]),
            bytes in prop::option::of((-9.0f64..99.0, 0.0f64..99.0, 0.1f64..9.0, 0.0f64..0.9)),
            habits in prop::option::of((prop::collection::vec(0.001f64..0.1, 0..9), 0.1f64..0.9, 0.1f64..900.0)),
            noise in prop::option::of(Just(crate::testing::noise())),
        ) -> Model {
            let names: Vec<String> = names.into_iter().collect();
            let device = Device { name: "kind".into(), count, actions: names.clone() };
            let basis = cipher.map(|cipher_suite| Basis::Plaintext { cipher_suite, record_overhead: [16, 31] });
            let [fixed, per_action, missing, surplus] = replies;
            let shares = vec![1.0 / names.len() as f64; names.len()];
            let actions = names.len();
            let reply_bytes = bytes.map(|(fixed, per_reply, spread, odd)| ReplyBytesModel {
                fixed,
                per_reply,
                per_action: vec![fixed; actions],
                spread,
                odd,
                odd_spread: 99.0,
                odd_deviations: vec![(-7, 1), (30, 4)],
            });
            let prior = habits.map(|(numbers, decay, concentration)| Prior { numbers, decay, shares, concentration });
            Model {
                overhead,
                smoothing: Smoothing { k, strength },
                prior,
                actions: names.into_iter().zip(sizes).map(|(name, size)| Action { name, size }).collect(),
                inventory: (count > 0).then_some(Inventory { devices: vec![device] }),
                neighbours: Neighbours::new(tuples.into_iter().map(|(size, epsilon, times)| EpsilonTuple { size, epsilon, times })).unwrap(),
                replies: ReplyCountModel { fixed, per_action, missing, surplus },
                reply_bytes,
                noise,
                learned: Provenance {
                    method,
                    commands: 3,
                    version: "0.1.0".into(),
                    basis: basis.unwrap_or(Basis::Wire),
                    captures: vec![CaptureDigest { name, sha256: "0f".repeat(32) }],
                },
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(model in any_model()) {
            let text = model.to_toml();
            prop_assert_eq!(Model::from_toml(&text), Ok(model), "{}", text);
        }

        #[test]
        fn any_text_is_a_model_or_an_error(text in ".{0,200}") {
            prop_assert!(Model::from_toml(&text).is_err());
        }

        #[test]
        fn a_changed_byte_does_no_harm(at: prop::sample::Index, byte in 32u8..127) {
            let mut text = model().to_toml().into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            if let Ok(text) = String::from_utf8(text) && let Ok(model) = Model::from_toml(&text) {
                prop_assert_eq!(Model::from_toml(&model.to_toml()), Ok(model));
            }
        }
    }
}
