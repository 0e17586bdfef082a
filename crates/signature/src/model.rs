//! The model file: everything learned of a gateway, readable by a person.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::syntax;
use crate::{Action, Device, Inventory, InventoryError, Limits, Neighbours, ReplyModel, Tuple};

/// The version of the model file.
pub const SCHEMA: u32 = 1;

/// Sizes beyond this are no message's, in bytes.
const LARGEST_SIZE: i64 = 1 << 32;
const MOST_ACTIONS: usize = 4096;
const MOST_TUPLES: usize = 10_000_000;
const MOST_NEIGHBOURS: usize = 100_000;

/// What was learned of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// |ac| in bytes.
    pub overhead: i64,
    /// How many neighbours to ask for ε.
    pub k: usize,
    /// The actions with their sizes.
    pub actions: Vec<Action>,
    /// The devices; `None` where any number of any action may be commanded.
    pub inventory: Option<Inventory>,
    /// The ⟨size, ε⟩ tuples.
    pub neighbours: Neighbours,
    /// How replies depend on actions.
    pub replies: ReplyModel,
    /// What it was learned on.
    pub learned: Learned,
}

/// What a model was learned on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// `robust` or `paper`.
    pub method: String,
    /// How many labelled commands.
    pub commands: u64,
    /// The version of sizeleak that learned it.
    pub version: String,
    /// What its sizes are.
    #[serde(flatten)]
    pub basis: Basis,
    /// The captures.
    #[serde(default, rename = "capture", skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<CaptureDigest>,
}

/// A capture a model was learned on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureDigest {
    /// The file's name, without its folder.
    pub name: String,
    /// The file's SHA-256, in hexadecimal.
    pub sha256: String,
}

/// What a model's sizes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "basis", rename_all = "lowercase")]
pub enum Basis {
    /// Sizes of plaintext: valid for every cipher suite.
    Plaintext {
        /// The cipher suite it was learned on, assumed where a session's is not seen.
        cipher_suite: String,
        /// The least and the most bytes this suite adds to a record.
        record_overhead: [u64; 2],
    },
    /// Sizes on the wire: valid for the unknown cipher suite it was learned on.
    Wire,
}

/// Why a model cannot be used.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is no model.
    #[error("{}: {fault}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
}

/// Why a command's size is none this model can work with.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "the model was learned on sizes of an unknown cipher suite, this session's suite is known: learn again from a capture \
     that holds the handshake"
)]
pub struct SizeError;

/// The form of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    overhead: i64,
    k: usize,
    /// `[size, ε, how often]`.
    tuples: Vec<[i64; 3]>,
    #[serde(default, rename = "action")]
    actions: Vec<Action>,
    #[serde(default, rename = "device")]
    devices: Vec<Device>,
    replies: ReplyModel,
    learned: Learned,
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<toml::Value>,
}

impl Model {
    /// Reads a model file.
    ///
    /// # Errors
    /// [`ModelError`], with the file's name.
    pub fn read(file: &Path) -> Result<Self, ModelError> {
        let text = fs::read_to_string(file).map_err(|source| ModelError::Read { file: file.to_owned(), source })?;
        Self::from_toml(&text).map_err(|fault| ModelError::Invalid { file: file.to_owned(), fault })
    }

    /// Reads a model from text.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let schema = toml::from_str::<SchemaOnly>(text)
            .map_err(|error| format!("no model: {}", syntax::fault(text, &error)))?
            .schema;
        match schema {
            Some(toml::Value::Integer(schema)) if schema == i64::from(SCHEMA) => {}
            Some(schema) => {
                return Err(format!("model schema {schema}, this version knows {SCHEMA}: learn the model again"));
            }
            None => return Err("no model: the key `schema` is missing".to_owned()),
        }
        let file: File = toml::from_str(text).map_err(|error| syntax::fault(text, &error))?;
        file.check()?;
        let tuples = file.tuples.iter().flat_map(|[size, epsilon, times]| {
            std::iter::repeat_n(Tuple { size: *size, epsilon: *epsilon }, usize::try_from(*times).unwrap_or(0))
        });
        let model = Self {
            overhead: file.overhead,
            k: file.k,
            neighbours: Neighbours::new(tuples.collect()).map_err(|error| error.to_string())?,
            actions: file.actions,
            inventory: Some(Inventory { devices: file.devices }).filter(|inventory| !inventory.devices.is_empty()),
            replies: file.replies,
            learned: file.learned,
        };
        model.limits().map_err(|error| error.to_string())?;
        Ok(model)
    }

    /// The text of the model file.
    pub fn to_toml(&self) -> String {
        let mut times: BTreeMap<Tuple, i64> = BTreeMap::new();
        for tuple in self.neighbours.tuples() {
            *times.entry(*tuple).or_default() += 1;
        }
        let mut text = String::from("# What sizeleak learned of a gateway. Sizes are bytes.\n");
        let line = |text: &mut String, line: std::fmt::Arguments<'_>| {
            // Writing to a string cannot fail.
            let _written = text.write_fmt(line);
        };
        line(&mut text, format_args!("schema = {SCHEMA}\noverhead = {}\nk = {}\n\n", self.overhead, self.k));
        text.push_str("# Each: size, what actions and overhead leave of it, how many labelled commands.\ntuples = [\n");
        for (tuple, times) in times {
            line(&mut text, format_args!("    [{}, {}, {times}],\n", tuple.size, tuple.epsilon));
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
        text.push_str(
            "\n# Replies = fixed + per_action · actions + deviation; each deviation with how often it was seen.\n",
        );
        let replies = toml::Table::from_iter([("replies".to_owned(), table(&self.replies))]);
        let learned = toml::Table::from_iter([("learned".to_owned(), table(&self.learned))]);
        line(&mut text, format_args!("{replies}\n{learned}"));
        text
    }

    /// What the inventory allows of commands.
    ///
    /// # Errors
    /// [`InventoryError`] where an action has no device.
    pub fn limits(&self) -> Result<Limits, InventoryError> {
        match &self.inventory {
            Some(inventory) => inventory.limits(self.actions.iter().map(|action| action.name.as_str())),
            None => Ok(Limits::free(self.actions.len())),
        }
    }

    /// The sizes, in this model's basis, that a command may have: from the least to the most. `wire` is the sum of its
    /// records' lengths, `plaintext` what is known of the plaintext in them.
    ///
    /// # Errors
    /// [`SizeError`] where the model's basis does not fit the session.
    pub fn sizes(&self, wire: u64, records: u32, plaintext: Option<[u64; 2]>) -> Result<[i64; 2], SizeError> {
        let signed = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
        match (&self.learned.basis, plaintext) {
            (Basis::Wire, Some(_)) => Err(SizeError),
            (Basis::Wire, None) => Ok([signed(wire); 2]),
            (Basis::Plaintext { .. }, Some([least, most])) => Ok([signed(least), signed(most)]),
            (Basis::Plaintext { record_overhead: [least, most], .. }, None) => {
                let without = |overhead: u64| signed(wire.saturating_sub(overhead.saturating_mul(records.into())));
                Ok([without(*most), without(*least)])
            }
        }
    }
}

impl File {
    /// Checks what a file may claim: a model comes from outside too.
    fn check(&self) -> Result<(), String> {
        let size = |what: &str, size: i64| {
            if size.abs() < LARGEST_SIZE { Ok(()) } else { Err(format!("{what} is {size} bytes, which no message is")) }
        };
        size("`overhead`", self.overhead)?;
        if self.actions.is_empty() || self.actions.len() > MOST_ACTIONS {
            return Err(format!("a model has 1 to {MOST_ACTIONS} [[action]], this one {}", self.actions.len()));
        }
        for (at, action) in self.actions.iter().enumerate() {
            size(&format!("the action `{}`", action.name), action.size)?;
            if action.size <= 0 {
                return Err(format!("the action `{}` must be 1 byte long at least", action.name));
            }
            if self.actions.iter().skip(at + 1).any(|other| other.name == action.name) {
                return Err(format!("the action `{}` stands there twice", action.name));
            }
        }
        if !(1..=MOST_NEIGHBOURS).contains(&self.k) {
            return Err(format!("`k` must be 1 to {MOST_NEIGHBOURS}, it is {}", self.k));
        }
        let mut total = 0_usize;
        for [tuple_size, epsilon, times] in &self.tuples {
            size("a tuple's size", *tuple_size)?;
            size("a tuple's ε", *epsilon)?;
            let times = usize::try_from(*times).map_err(|_| format!("a tuple cannot be there {times} times"))?;
            total = total.saturating_add(times);
        }
        if total > MOST_TUPLES {
            return Err(format!("a model has {MOST_TUPLES} tuples at most, this one {total}"));
        }
        let replies = [self.replies.fixed, self.replies.per_action];
        if !replies.iter().all(|figure| figure.is_finite() && figure.abs() < 1e6) {
            return Err("the figures of [replies] are no numbers of replies".to_owned());
        }
        if self
            .replies
            .deviations
            .iter()
            .any(|[deviation, times]| deviation.abs() > 1 << 32 || !(0..1 << 32).contains(times))
        {
            return Err("the deviations of [replies] are out of bounds".to_owned());
        }
        Ok(())
    }
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

    fn model() -> Model {
        let tuples = [(100, 0), (100, 0), (150, -1)];
        let tuples = tuples.into_iter().map(|(size, epsilon)| Tuple { size, epsilon }).collect();
        Model {
            overhead: 60,
            k: 3,
            actions: vec![Action { name: "on".into(), size: 40 }, Action { name: "o\"ff".into(), size: 41 }],
            inventory: Some(Inventory {
                devices: vec![Device { name: "plug".into(), count: 12, actions: vec!["on".into(), "o\"ff".into()] }],
            }),
            neighbours: Neighbours::new(tuples).unwrap(),
            replies: ReplyModel { fixed: 0.5, per_action: 1.0, deviations: vec![[-1, 3], [0, 90]] },
            learned: Learned {
                method: "robust".into(),
                commands: 3,
                version: "0.1.0".into(),
                basis: Basis::Plaintext { cipher_suite: "TLS_AES_128_GCM_SHA256".into(), record_overhead: [17, 17] },
                captures: vec![CaptureDigest { name: "learn.pcap".into(), sha256: "00ff".into() }],
            },
        }
    }

    #[test]
    fn the_file_reads_back() {
        for (basis, inventory) in [(model().learned.basis, model().inventory), (Basis::Wire, None)] {
            let mut model = Model { inventory, ..model() };
            model.learned.basis = basis;
            assert_eq!(Model::from_toml(&model.to_toml()).unwrap(), model, "{}", model.to_toml());
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let changed = |from: &str, to: &str| {
            let text = model().to_toml();
            assert!(text.contains(from), "{from:?} is not in {text}");
            Model::from_toml(&text.replacen(from, to, 1)).unwrap_err()
        };
        assert!(changed("schema = 1", "schema = 2").contains("schema 2, this version knows 1"));
        assert!(changed("schema = 1", "").contains("`schema` is missing"));
        assert!(changed("size = 40", "size = 0").contains("1 byte long"));
        assert!(changed("overhead = 60", "overhead = 9223372036854775807").contains("no message"));
        assert!(changed("k = 3", "k = 0").contains("`k` must be"));
        assert!(changed("[100, 0, 2]", "[100, 0, 99999999999]").contains("tuples at most"));
        assert!(changed("per_action = 1.0", "per_action = nan").contains("[replies]"));
        assert!(changed("actions = [\"on\", ", "actions = [").contains("no device"));
        assert!(Model::from_toml("\0").unwrap_err().contains("no model"));
    }

    #[test]
    fn sizes_are_taken_in_the_models_basis() {
        let mut model = model();
        assert_eq!(model.sizes(300, 2, None), Ok([266, 266]));
        assert_eq!(model.sizes(300, 2, Some([250, 270])), Ok([250, 270]));
        assert_eq!(model.sizes(u64::MAX, 1, Some([0, u64::MAX])), Ok([0, i64::MAX]));
        model.learned.basis = Basis::Wire;
        assert_eq!(model.sizes(300, 2, None), Ok([300, 300]));
        assert_eq!(model.sizes(300, 2, Some([250, 270])), Err(SizeError));
    }

    proptest! {
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
