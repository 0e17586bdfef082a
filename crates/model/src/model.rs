//! A model: everything learned about a gateway, what its sizes are (plaintext or bytes on the wire) and how a command's
//! size is converted; and the model of the same gateway whose messages have become longer or shorter. Its file format is in
//! `model_file`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sizeleak_text::rough_percent;
use thiserror::Error;

use crate::action::{MAX_ACTION_SIZE, MAX_MESSAGE_SIZE};
use crate::kinds::actions_in_words;
use crate::{
    Action, Inventory, InventoryError, Kinds, LearnedPadding, Limits, Neighbours, NoiseStatistics, Prior,
    RecurringCommand, ReplyBytesModel, ReplyClass, ReplyCountModel, ReplyWindows, Scope, SingleReplies, Smoothing,
};

/// How sizes are learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum FitMethod {
    /// The paper's procedure, from commands of one action on one device and on two
    Paper,
    /// A fit over all labelled commands that outliers and growing length fields do not bias
    #[default]
    Robust,
}

/// By how many bytes ε may be greater than any that was learned.
const EPSILON_MARGIN: i64 = 64;

#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The gateway and the services it was learned on; empty for any.
    pub scope: Scope,
    /// |ac| in bytes.
    pub overhead: i64,
    /// The actions with their sizes, in sums of which commands are taken apart; none if the labels determine no size.
    pub actions: Vec<Action>,
    /// Labelled commands whose parts the labels do not separate; `None` if they determine every size.
    pub kinds: Option<Kinds>,
    /// The devices; `None` if any number of any action is possible.
    pub inventory: Option<Inventory>,
    /// The ⟨size, ε⟩ tuples.
    pub neighbours: Neighbours,
    pub smoothing: Smoothing,
    /// The probabilities of actions before the size is known; `None` if every multiset of actions is equally likely.
    pub prior: Option<Prior>,
    pub replies: ReplyCountModel,
    /// How the bytes of replies depend on the actions, if they are more informative than the number.
    pub reply_bytes: Option<ReplyBytesModel>,
    /// How single replies depend on the actions, if they do.
    pub single_replies: Option<SingleReplies>,
    /// How long replies take, if that is longer than usual.
    pub reply_windows: Option<ReplyWindows>,
    /// Statistics of the records that are not commands; `None` if none were learned.
    pub noise: Option<NoiseStatistics>,
    pub learned: Provenance,
}

/// How and from what a model was learned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Provenance {
    pub method: FitMethod,
    /// The number of labelled commands; where most or all have no label, of those that the sizes explain.
    pub commands: u64,
    /// The version of sizeleak that learned the model.
    pub version: String,
    #[serde(flatten)]
    pub basis: Basis,
    #[serde(rename = "capture", skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<CaptureDigest>,
    /// How messages are padded, so that sizes are known as ranges; `None` without padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub padding: Option<LearnedPadding>,
    /// What the greatest size that each block holds leaves modulo the bytes of a block, where it is not what
    /// [`SizeBlocks`] are taken to leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_rest: Option<u32>,
    /// The probability that its sizes are right, to four digits: 0 where they do not add up, or do not depend on labels.
    #[serde(skip_serializing_if = "is_certain")]
    pub certainty: f64,
    /// What the labels leave uncertain, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The options by which commands were found, where they were not the usual ones: by stage, named like its keys in
    /// `pipeline.toml`. The model holds for commands that are found like this.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub found_with: BTreeMap<String, toml::Table>,
    /// The [marks](command_mark) of the commands that it was learned from; empty if these are not known, or too many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_certain(certainty: &f64) -> bool {
    *certainty >= 1.0
}

/// The most commands whose marks a model holds.
pub const MAX_SEEN: usize = 1 << 16;

/// What tells a command from others by its time, in nanoseconds since 1970: two have the same once in 2³² cases.
pub fn command_mark(time_ns: i64) -> u32 {
    // The finalizer of MurmurHash3: times of commands share most of their bits.
    let mut mixed = time_ns.cast_unsigned();
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        mixed = (mixed ^ mixed >> 33).wrapping_mul(factor);
    }
    (mixed >> 32) as u32
}

/// The blocks in which sizes are seen, under a block cipher or where messages are padded to a multiple: all sizes of a
/// block look like its greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeBlocks {
    pub bytes: u64,
    /// What the greatest sizes of blocks leave modulo their bytes.
    pub rest: u64,
}

impl SizeBlocks {
    /// The greatest size that looks like this one.
    pub fn greatest(self, size: u64) -> u64 {
        size + (self.rest + self.bytes - size % self.bytes) % self.bytes
    }
}

impl Provenance {
    /// The blocks in which sizes are seen; `None` where they are seen exactly, or padded by a policy alone.
    pub fn blocks(&self) -> Option<SizeBlocks> {
        let usual = self.usual_blocks()?;
        Some(SizeBlocks { rest: self.block_rest.map_or(usual.rest, |rest| u64::from(rest) % usual.bytes), ..usual })
    }

    /// The same where nothing else is known: padding is up to a multiple; a block cipher encrypts the MAC and at least
    /// one byte of padding, too, so that lengths of records are multiples of the block (RFC 5246, section 6.2.3.2). Behind
    /// a MAC that is not encrypted (RFC 7366) they are not: that of SHA-1 has 20 bytes.
    fn usual_blocks(&self) -> Option<SizeBlocks> {
        match (&self.basis, &self.padding) {
            (_, Some(LearnedPadding::Modulo(bytes))) => Some(SizeBlocks { bytes: u64::from(*bytes), rest: 0 }),
            (Basis::Plaintext { record_overhead: [least, most], .. }, _) if most > least => {
                let bytes = u64::from(most - least) + 1;
                Some(SizeBlocks { bytes, rest: (bytes - u64::from(*least) % bytes) % bytes })
            }
            _ => None,
        }
    }

    /// Takes over what the greatest sizes of labelled commands leave modulo a block, if more than half of them leave the
    /// same: ranges of other causes, as those of QUIC, are no blocks.
    pub fn observe_blocks(&mut self, greatest_sizes: impl IntoIterator<Item = i64>) {
        self.block_rest = None;
        let Some(SizeBlocks { bytes, rest: usual }) = self.usual_blocks() else { return };
        let (mut all, mut times) = (0, BTreeMap::new());
        for size in greatest_sizes {
            all += 1;
            *times.entry(size.rem_euclid(bytes.cast_signed()).cast_unsigned()).or_insert(0_u64) += 1;
        }
        let common = times.into_iter().find(|(_, times)| 2 * times > all).map(|(rest, _)| rest);
        self.block_rest = common.filter(|rest| *rest != usual).and_then(|rest| u32::try_from(rest).ok());
    }

    /// Why no figure of what sizes give away can be had from the model, and what to do: its sizes are more probably wrong
    /// than right. `None` if one can.
    pub fn unfit_for_figures(&self) -> Option<String> {
        (self.certainty < 0.5).then(|| {
            let why = if self.warnings.is_empty() {
                "label more commands, of several actions each, and learn again".to_owned()
            } else {
                self.warnings.join("; ")
            };
            // 0 says that they do not add up, or do not depend on labels, whatever the probability.
            let is_said = why.contains("right with a probability of");
            let probability = match self.certainty {
                certainty if certainty > 0.0 && !is_said => {
                    format!("the learned ones are right with a probability of {}; ", rough_percent(certainty))
                }
                _ => String::new(),
            };
            format!("sizes are not known well enough for a figure: {probability}{why}")
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureDigest {
    /// The file's name, without its folder.
    pub name: String,
    /// The file's SHA-256: 64 lower-case hexadecimal digits.
    pub sha256: String,
}

const NAMED_RECURRING: usize = 3;

impl Model {
    /// The commands that recur, in words, with their shares of all commands beyond habit; `None` if none does.
    pub fn recurring_in_words(&self) -> Option<String> {
        let prior = self.prior.as_ref().filter(|prior| !prior.recurring.is_empty())?;
        let named = |RecurringCommand { counts, share }: &RecurringCommand| {
            let actions = self.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
            let words = actions_in_words(actions.map(|(action, count)| (action.name.as_str(), *count)));
            format!("{words} ({:.1} %)", 100.0 * share)
        };
        let first: Vec<String> = prior.recurring.iter().take(NAMED_RECURRING).map(named).collect();
        let more = match prior.recurring.len() - first.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let recur = match prior.recurring.len() {
            1 => "1 command recurs".to_owned(),
            many => format!("{many} commands recur"),
        };
        let all = 100.0 * prior.recurring_share();
        Some(format!("{recur} beyond chance, {all:.1} % of all: {}{more}", first.join(", ")))
    }

    /// The names of all actions it can answer: those with sizes, then others that only kinds have.
    pub fn action_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.actions.iter().map(|action| action.name.as_str()).collect();
        let of_kinds = self.kinds.iter().flat_map(|kinds| &kinds.list).flat_map(|kind| &kind.actions);
        for (name, _) in of_kinds {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// The commands that the inventory allows, of all actions in the order of [`Self::action_names`].
    ///
    /// # Errors
    /// [`InventoryError`] if an action has no device.
    pub fn limits_of_all(&self) -> Result<Limits, InventoryError> {
        let actions: Vec<Action> = self.action_names().into_iter().map(|name| Action::new(name, 1)).collect();
        Limits::of(self.inventory.as_ref(), &actions)
    }

    /// The commands of [`Self::actions`] that the inventory allows.
    ///
    /// # Errors
    /// [`InventoryError`] if an action has no device.
    pub fn limits(&self) -> Result<Limits, InventoryError> {
        Limits::of(self.inventory.as_ref(), &self.actions)
    }

    /// The possible sizes of a command in this model's basis, as [`Basis::sizes`]. Where the model knows its services,
    /// a session with them is taken to use the cipher suite that the model was learned on, as long as one end decides
    /// it. Of a padded message they are those before the padding.
    ///
    /// # Errors
    /// [`SizeError`] if the model knows only wire sizes of an unknown service and the session's cipher suite is known.
    pub fn sizes(&self, wire: u64, records: u32, plaintext: Option<[u64; 2]>) -> Result<[i64; 2], SizeError> {
        let sizes = self.padded_sizes(wire, records, plaintext)?;
        let Some(padding) = &self.learned.padding else { return Ok(sizes) };
        let [least, most] = padding.sizes_before(sizes);
        let is_known = matches!(padding, LearnedPadding::Policy(_));
        let largest = self.largest_size().filter(|_| is_known).unwrap_or(i64::MAX);
        Ok([least, most.min(largest.max(least))])
    }

    /// A size that no command exceeds, in bytes; `None` without an inventory.
    fn largest_size(&self) -> Option<i64> {
        let devices = self.inventory.as_ref()?.devices.iter().map(|device| i64::from(device.count)).sum::<i64>();
        let largest = self.actions.iter().map(|action| action.size_range()[1]).max()?;
        let epsilon = self.neighbours.tuples().iter().map(|tuple| tuple.epsilon).max().unwrap_or(0);
        Some(
            self.overhead
                .saturating_add(devices.saturating_mul(largest))
                .saturating_add(epsilon.max(0) + EPSILON_MARGIN),
        )
    }

    /// The same with the padding.
    pub fn padded_sizes(&self, wire: u64, records: u32, plaintext: Option<[u64; 2]>) -> Result<[i64; 2], SizeError> {
        let is_of_service = self.learned.basis == Basis::Wire && !self.scope.services.is_empty();
        self.learned.basis.sizes(wire, records, plaintext.filter(|_| !is_of_service))
    }
}

impl Model {
    /// The model of the same gateway where commands are longer by `bytes`, and each single reply by `reply_bytes`; both
    /// may be negative.
    ///
    /// |ac| grows. The ⟨size, ε⟩ tuples stay as they are: ε is what length fields add at a size, and they count all bytes
    /// of a message, whatever they are for.
    #[must_use]
    pub fn with_longer_messages(mut self, bytes: i64, reply_bytes: i64) -> Self {
        self.overhead = self.overhead.saturating_add(bytes);
        self.single_replies = self.single_replies.map(|replies| replies.longer_by(reply_bytes));
        if let Some(of_all) = &mut self.reply_bytes {
            of_all.per_reply += reply_bytes as f64;
        }
        self
    }

    /// The model of the same gateway where one action alone is longer by some bytes, which may be negative. `None` if it has
    /// no such action, or no bytes were left of it.
    #[must_use]
    pub fn with_longer_action(mut self, name: &str, bytes: i64) -> Option<Self> {
        let action = self.actions.iter_mut().find(|action| action.name == name)?;
        let is_size = |size: &i64| (1..=MAX_ACTION_SIZE).contains(size);
        for size in action.sizes.iter_mut().map(|(size, _)| size).chain([&mut action.size]) {
            *size = size.checked_add(bytes).filter(is_size)?;
        }
        Some(self)
    }
}

impl SingleReplies {
    /// The same where each reply is longer by some bytes, and so are foreign records, which the same gateway sends; of
    /// several replies in one record each is longer. Sizes stay at least 0.
    #[must_use]
    pub fn longer_by(mut self, bytes: i64) -> Self {
        let of_classes = self.classes.iter_mut().map(|ReplyClass { sizes, .. }| sizes);
        for (size, _) in of_classes.chain([&mut self.foreign_sizes]).flatten() {
            *size = size.saturating_add(bytes).clamp(0, MAX_MESSAGE_SIZE);
        }
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "basis", rename_all = "lowercase")]
pub enum Basis {
    /// Plaintext sizes: valid for every cipher suite.
    Plaintext {
        /// The cipher suite it was learned on; assumed for sessions whose suite is unknown.
        cipher_suite: String,
        /// Smallest and largest number of bytes that this suite adds to a record.
        record_overhead: [u32; 2],
    },
    /// Sizes on the wire: valid only for the unknown cipher suite it was learned on.
    Wire,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireSize {
    /// The sum of its records' lengths, in bytes.
    pub wire: u64,
    pub records: u32,
    /// Smallest and largest plaintext size in bytes, if the session's cipher suite is known.
    pub plaintext: Option<[u64; 2]>,
}

/// The model cannot be applied to a session. (Its text is part of the frame contract: it becomes the detail of a
/// notice.)
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error(
    "the model was learned on sizes on the wire, under a cipher suite it does not know, while this session's suite is \
     known: learn again from captures that hold the handshake, or with `learn --cipher`"
)]
pub struct SizeError;

impl Basis {
    /// The possible sizes of a command in this basis, from smallest to largest, in bytes.
    ///
    /// # Errors
    /// [`SizeError`] if the basis is wire sizes and the session's cipher suite is known.
    pub fn sizes(&self, wire: u64, records: u32, plaintext: Option<[u64; 2]>) -> Result<[i64; 2], SizeError> {
        match (self, plaintext) {
            (Basis::Wire, Some(_)) => Err(SizeError),
            (Basis::Wire, None) => Ok([signed(wire); 2]),
            (Basis::Plaintext { .. }, Some(range)) => Ok(range.map(signed)),
            (Basis::Plaintext { record_overhead: [least, most], .. }, None) => {
                let without = |overhead: &u32| signed(wire.saturating_sub(u64::from(*overhead) * u64::from(records)));
                Ok([without(most), without(least)])
            }
        }
    }

    /// The approximate bytes of replies in this basis: `wire` bytes in `replies` records of the session of `command`.
    /// The cipher suite is assumed to add the same to a record in both directions.
    pub fn reply_bytes(&self, wire: u64, replies: u32, command: WireSize) -> i64 {
        let [_, added] = self.added(command);
        signed(wire).saturating_sub(signed(added.saturating_mul(replies.into())))
    }

    /// The possible sizes of one reply in this basis: a record of `wire` bytes in the session of `command`, whose cipher
    /// suite is assumed to add the same to a record in both directions. A basis of ranges holds the greatest size of each
    /// range: an exact size stands for all ranges with it.
    pub fn reply_sizes(&self, wire: u32, command: WireSize) -> [i64; 2] {
        let blocks = match self {
            Basis::Plaintext { record_overhead: [least, most], .. } => most.saturating_sub(*least),
            Basis::Wire => 0,
        };
        let [least, most] = self.added(command).map(|added| signed(u64::from(wire).saturating_sub(added)));
        [least, if least == most { most.saturating_add(i64::from(blocks)) } else { most }]
    }

    /// The most and the fewest bytes that the cipher suite adds to a record in the session of `command`.
    fn added(&self, command: WireSize) -> [u64; 2] {
        match (self, command.plaintext) {
            (Basis::Wire, _) => [0, 0],
            (Basis::Plaintext { .. }, Some(plaintext)) if command.records > 0 => {
                plaintext.map(|size| command.wire.saturating_sub(size) / u64::from(command.records))
            }
            (Basis::Plaintext { record_overhead: [least, most], .. }, _) => [*most, *least].map(u64::from),
        }
    }
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
