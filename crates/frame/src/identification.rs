//! `identification`: a command with the actions it may have carried.

use std::fmt::Formatter;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Command, Shared};

/// What the place of a shared list on the heap takes besides its items, in bytes.
const OF_AN_ALLOCATION: usize = 32;

/// A command and its candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identification {
    /// The command.
    #[serde(flatten)]
    pub command: Command,
    /// The candidates that are listed, most probable first.
    pub candidates: Shared<Candidate>,
    /// How many candidates there are, exact also where the list is cut; `u64::MAX` stands for that many or more.
    pub candidate_count: u64,
    /// How many of them are listed.
    pub listed: u64,
    /// The least number of actions the traffic around the command allows, once a pruner has looked at it.
    pub min_actions: Option<u32>,
    /// The greatest number of actions the traffic allows.
    pub max_actions: Option<u32>,
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
}

/// Action names with their counts, in the model's order; a map `{name: count}` in frames. Names are shared, since
/// thousands of candidates repeat the same few, and so are whole lists, since the same sizes come again and again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Actions(Shared<(Arc<str>, u32)>);

impl Actions {
    /// The names with their counts.
    pub fn iter(&self) -> std::slice::Iter<'_, (Arc<str>, u32)> {
        self.0.iter()
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How often an action occurs.
    pub fn count(&self, name: &str) -> u32 {
        self.0.iter().find(|(action, _)| &**action == name).map_or(0, |(_, count)| *count)
    }

    /// How many actions there are in all.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| u64::from(*count)).sum()
    }
}

impl Shared<Candidate> {
    /// About how many bytes of memory the list takes, names aside: the candidates, and their actions on the heap.
    pub fn memory_bytes(&self) -> usize {
        let actions: usize = self.iter().map(|one| size_of_val(&*one.actions.0)).sum();
        actions + self.len() * (size_of::<Candidate>() + OF_AN_ALLOCATION)
    }
}

impl From<Vec<(Arc<str>, u32)>> for Actions {
    fn from(counts: Vec<(Arc<str>, u32)>) -> Self {
        Self(counts.into())
    }
}

impl FromIterator<(Arc<str>, u32)> for Actions {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, u32)>>(counts: I) -> Self {
        Self(counts.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a Actions {
    type Item = &'a (Arc<str>, u32);
    type IntoIter = std::slice::Iter<'a, (Arc<str>, u32)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Actions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, count) in self {
            map.serialize_entry(&**name, count)?;
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

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
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
