//! `identification`: a command with the actions it may have carried.

use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Command, SharedList, Shift};

/// The overhead of a heap allocation in bytes.
const ALLOCATION_BYTES: usize = 32;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Identification {
    #[serde(flatten)]
    pub command: Command,
    /// The candidates that are listed, most probable first.
    pub candidates: SharedList<Candidate>,
    /// How many candidates there are, even if not all are listed; `u64::MAX` means at least that many.
    pub candidate_count: u64,
    pub listed: u64,
    /// The least number of actions the traffic around the command allows, once `pruner` has processed it.
    pub min_actions: Option<u32>,
    /// The greatest number of actions the traffic allows.
    pub max_actions: Option<u32>,
    /// How probable a command of this size is by the model, all candidates together: 0 where nothing explains it, and
    /// `None` where the model does not say.
    /// Old streams lack it.
    #[serde(default)]
    pub size_probability: Option<f64>,
    /// P(single replies | size) by the model, all candidates together, listed or not; `None` where `decomposer` did not
    /// use the replies to choose which candidates to list. A listed candidate's probability given size and replies is
    /// its probability times P(single replies | its actions) over this. Old streams lack it.
    #[serde(default)]
    pub reply_probability: Option<f64>,
    /// By how much the flow's messages may be longer than the model's, as in the correction.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub shifts: SharedList<Shift>,
    /// How probable each number of actions is, summed over the candidates that are listed, by number; from `pruner`. Old
    /// streams lack it.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub numbers: SharedList<NumberProbability>,
    /// How probable it is that the command is for a device of each type of the model's inventory, summed over the
    /// candidates that are listed; from `pruner`. Empty without an inventory. Old streams lack it.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub device_types: SharedList<DeviceTypeProbability>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NumberProbability {
    /// The number of actions, which is that of devices where each has one.
    pub actions: u64,
    /// From 0 to 1.
    pub probability: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceTypeProbability {
    /// The type's name in the inventory.
    pub device: Box<str>,
    /// From 0 to 1. Those of all types need not sum to 1: a command may be for several.
    pub probability: f64,
}

impl Identification {
    pub fn unanswered(command: Command) -> Self {
        Self { command, ..Self::default() }
    }
}

/// One way to make up a command's size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// How often each action occurs.
    pub actions: Actions,
    /// The ε this candidate leaves, in bytes.
    pub epsilon: i64,
    /// How probable it is among all candidates, from 0 to 1.
    pub probability: f64,
    /// P(size and replies | its actions), as a multiple of what the list's other candidates have; so other habits can be
    /// the prior in place of those that `probability` comes from. `None`, and absent on the wire, where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likelihood: Option<f64>,
}

/// Action names with their counts, in the model's order; a map `{name: count}` in frames. Thousands of candidates
/// repeat the same few names, so they refer to names by index in a shared list ([`Actions::of_many`]).
#[derive(Clone, Default)]
pub struct Actions {
    counts: Arc<ActionCounts>,
    from: u32,
    to: u32,
}

#[derive(Debug, Default)]
struct ActionCounts {
    names: SharedList<Arc<str>>,
    /// Indices of names with their counts, one candidate after another.
    counts: Box<[(u32, u32)]>,
}

impl Actions {
    /// The actions of many candidates, which share their names and one allocation. `counts` holds (index of a name,
    /// count) for one candidate after another, `ends` the end of each candidate in it.
    pub fn of_many<E>(
        names: SharedList<Arc<str>>,
        counts: Vec<(u32, u32)>,
        ends: E,
    ) -> impl Iterator<Item = Self> + use<E>
    where
        E: IntoIterator<Item = u32>,
    {
        let all = Arc::new(ActionCounts { names, counts: counts.into() });
        let mut from = 0;
        ends.into_iter().map(move |to| {
            let from = std::mem::replace(&mut from, to);
            Self { counts: Arc::clone(&all), from, to }
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u32)> {
        self.indexed_counts().iter().filter_map(|(index, count)| Some((self.names().get(*index as usize)?, *count)))
    }

    /// Indices into [`Self::names`], each with its count.
    pub fn indexed_counts(&self) -> &[(u32, u32)] {
        self.counts.counts.get(self.from as usize..self.to as usize).unwrap_or_default()
    }

    pub fn names(&self) -> &SharedList<Arc<str>> {
        &self.counts.names
    }

    pub fn len(&self) -> usize {
        self.indexed_counts().len()
    }

    pub fn is_empty(&self) -> bool {
        self.indexed_counts().is_empty()
    }

    pub fn count(&self, name: &str) -> u32 {
        self.iter().find(|(action, _)| &***action == name).map_or(0, |(_, count)| count)
    }

    pub fn total(&self) -> u64 {
        self.indexed_counts().iter().map(|(_, count)| u64::from(*count)).sum()
    }
}

impl ActionCounts {
    fn memory_bytes(&self, others: Option<&Self>) -> usize {
        let has_own_names = others.is_none_or(|others| !others.names.is_clone_of(&self.names));
        let names = if has_own_names { ALLOCATION_BYTES + size_of_val(&*self.names) } else { 0 };
        names + size_of::<Self>() + size_of_val(&*self.counts) + 2 * ALLOCATION_BYTES
    }
}

impl SharedList<Candidate> {
    /// About how many bytes of memory the list takes, actions included, without the text of names.
    pub fn memory_bytes(&self) -> usize {
        let mut before: Option<&Arc<ActionCounts>> = None;
        let mut bytes = ALLOCATION_BYTES + size_of_val(&**self);
        for within in self.iter().map(|candidate| &candidate.actions.counts) {
            if before.is_none_or(|before| !Arc::ptr_eq(before, within)) {
                bytes += within.memory_bytes(before.map(Arc::as_ref));
                before = Some(within);
            }
        }
        bytes
    }
}

impl fmt::Debug for Actions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for Actions {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Actions {}

impl From<Vec<(Arc<str>, u32)>> for Actions {
    fn from(counts: Vec<(Arc<str>, u32)>) -> Self {
        counts.into_iter().collect()
    }
}

impl FromIterator<(Arc<str>, u32)> for Actions {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, u32)>>(counts: I) -> Self {
        let (names, counts): (Vec<Arc<str>>, Vec<(u32, u32)>) =
            counts.into_iter().zip(0..).map(|((name, count), index)| (name, (index, count))).unzip();
        let to = counts.len() as u32;
        Self { counts: Arc::new(ActionCounts { names: names.into(), counts: counts.into() }), from: 0, to }
    }
}

impl Serialize for Actions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (name, count) in self.iter() {
            map.serialize_entry(&**name, &count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Actions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ActionsVisitor)
    }
}

struct ActionsVisitor;

impl<'de> Visitor<'de> for ActionsVisitor {
    type Value = Actions;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map from action names to counts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Actions, A::Error> {
        let mut actions = Vec::new();
        while let Some((name, count)) = map.next_entry::<String, u32>()? {
            actions.push((Arc::from(name), count));
        }
        Ok(actions.into())
    }
}
