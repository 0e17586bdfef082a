//! What is kept of the units of a point: for each one its records, the state behind it, and a description that is written
//! last. All three have the name of the unit, which says when it begins and what it was made from.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::{fs, io};

use blake3::Hash;
use serde::{Deserialize, Serialize};
use sizeleak_pipeline::Checkpoint;
use sizeleak_platform::storage::Durability;
use sizeleak_text::utc;

use crate::description::{DescribedFile, forget_unsettled, read_checked_json, to_checked_json};
use crate::layout::{Layout, has_length, remove_file};

const RECORDS: &str = "frames.zst";
const STATE: &str = "state";
const DESCRIPTION: &str = "json";

const KEY_DIGITS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitDescription {
    pub(crate) name: String,
    /// The digest of everything it depends on.
    pub(crate) key: String,
    /// Its captures; none if it is the end of the flows.
    pub(crate) captures: Vec<DescribedFile>,
    pub(crate) records: u64,
    pub(crate) records_bytes: u64,
    /// The state behind it; `None` if no flow is left.
    pub(crate) state: Option<StoredState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    pub(crate) digest: String,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct UnitStore<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) folder: PathBuf,
}

impl<'a> UnitStore<'a> {
    pub(crate) fn of(layout: &'a Layout, point: &str) -> Self {
        Self { layout, folder: layout.records(point) }
    }

    pub(crate) fn records(&self, name: &str) -> PathBuf {
        self.file(name, RECORDS)
    }

    pub(crate) fn state_file(&self, name: &str) -> PathBuf {
        self.file(name, STATE)
    }

    fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    /// The unit that begins at this time, or the end of all flows, if it is there.
    pub(crate) fn find(&self, head_ns: Option<i64>, key: &Hash) -> Option<UnitDescription> {
        let unit = read_checked_json::<UnitDescription>(&self.file(&unit_name(head_ns, key), DESCRIPTION))
            .filter(|unit| unit.key == key.to_hex().as_str())?;
        let has_state = unit.state.as_ref().is_none_or(|state| has_length(&self.state_file(&unit.name), state.bytes));
        (has_state && self.has_records(&unit)).then_some(unit)
    }

    pub(crate) fn state(&self, unit: &UnitDescription) -> Option<Checkpoint> {
        let state = Checkpoint::read(&self.state_file(&unit.name)).ok()?;
        (state.digest().ok()? == unit.state.as_ref()?.digest).then_some(state)
    }

    /// Whether the records of a unit are there. Their stream has a checksum of its own.
    pub(crate) fn has_records(&self, unit: &UnitDescription) -> bool {
        has_length(&self.records(&unit.name), unit.records_bytes)
    }

    pub(crate) fn describe(&self, unit: &UnitDescription) -> io::Result<()> {
        let path = self.file(&unit.name, DESCRIPTION);
        self.layout.write(&path, &to_checked_json(unit)?, Durability::Disposable)
    }

    /// The captures of all units, as far as they can have stayed as they were.
    pub(crate) fn captures(&self) -> Vec<DescribedFile> {
        let described = self.names().into_iter().filter(|path| path.extension().is_some_and(|it| it == DESCRIPTION));
        let captures = described.filter_map(|path| {
            let mut captures = read_checked_json::<UnitDescription>(&path)?.captures;
            forget_unsettled(&mut captures, &path).ok()?;
            Some(captures)
        });
        captures.flatten().collect()
    }

    pub(crate) fn units(&self, names: &[String]) -> Vec<UnitDescription> {
        names.iter().filter_map(|name| read_checked_json(&self.file(name, DESCRIPTION))).collect()
    }

    pub(crate) fn keep_only(&self, units: &[String]) -> io::Result<()> {
        let endings = [RECORDS, STATE, DESCRIPTION];
        let kept = units.iter().flat_map(|name| endings.map(|ending| self.file(name, ending)));
        let kept: BTreeSet<PathBuf> = kept.collect();
        for path in self.names().into_iter().filter(|path| !kept.contains(path)) {
            remove_file(&path)?;
        }
        if units.is_empty() {
            // It may not be there.
            _ = fs::remove_dir(&self.folder);
        }
        Ok(())
    }

    fn names(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }
}

/// The name of a unit that begins at this time; the end of all flows comes last.
pub(crate) fn unit_name(head_ns: Option<i64>, key: &Hash) -> String {
    let time = head_ns.map_or_else(
        || "end".to_owned(),
        |head_ns| {
            let digits = utc(head_ns).replace(['-', ':', 'Z'], "");
            format!("{digits}{:03}Z", head_ns.rem_euclid(1000))
        },
    );
    let key = key.to_hex();
    format!("{time}-{}", key.get(..KEY_DIGITS).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_names_are_in_order_of_time() {
        let key = blake3::hash(b"");
        let heads = [i64::MIN, -1, 0, 999, 1000, 1_767_600_000_012_345_678, i64::MAX];
        let names: Vec<String> = heads.map(Some).into_iter().chain([None]).map(|head| unit_name(head, &key)).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(names[5], "20260105T080000.012345678Z-af1349b9f5f9a1a6");
        assert!(names.iter().collect::<BTreeSet<_>>().len() == names.len(), "{names:?}");
    }
}
