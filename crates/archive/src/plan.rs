//! What a run would do, as far as that is known without reading more of a capture than its first packet.

use std::mem;
use std::path::{Path, PathBuf};

use crate::chain::UnitBounds;
use crate::description::{DescribedFile, PointDescription};
use crate::discovery::CapturePoint;
use crate::found_file::FoundFile;
use crate::keys::{answers_key, end_key, records_key};
use crate::point_run::{PointRun, is_by_time};
use crate::unit_store::{UnitStore, unit_name};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivePlan {
    pub points: Vec<PlannedPoint>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPoint {
    pub point: String,
    pub files: usize,
    pub bytes: u64,
    /// Those of them that are read, at most: those that are new or have changed, and those whose flows may begin differently
    /// because of these.
    pub files_to_read: Vec<PlannedFile>,
    /// Whether its answers are rebuilt, from the records that are kept if no file is read.
    pub makes_answers: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    pub path: PathBuf,
    pub bytes: u64,
}

impl ArchivePlan {
    pub fn files_to_read(&self) -> impl Iterator<Item = &PlannedFile> {
        self.points.iter().flat_map(|point| &point.files_to_read)
    }

    pub fn bytes_to_read(&self) -> u64 {
        self.files_to_read().map(|file| file.bytes).sum()
    }
}

impl PlannedPoint {
    pub fn bytes_to_read(&self) -> u64 {
        self.files_to_read.iter().map(|file| file.bytes).sum()
    }
}

struct PlannedUnits<'a> {
    run: &'a PointRun<'a>,
    store: &'a UnitStore<'a>,
    bounds: UnitBounds,
    present: Vec<FoundFile>,
    state: Option<String>,
    /// Whether that state is not known, so that everything behind it is read.
    is_unknown: bool,
    captures: Vec<DescribedFile>,
    files_to_read: Vec<PlannedFile>,
}

impl PointRun<'_> {
    pub(crate) fn plan(&self, point: &CapturePoint) -> PlannedPoint {
        let store = UnitStore::of(self.layout, &point.name);
        let known = PointDescription::read(self.layout, &point.name);
        let mut units = PlannedUnits {
            run: self,
            store: &store,
            bounds: UnitBounds::new(is_by_time(self.pipeline)),
            present: Vec::new(),
            state: None,
            is_unknown: false,
            captures: Vec::new(),
            files_to_read: Vec::new(),
        };
        for file in self.find(point, known.as_ref(), &store) {
            if units.bounds.is_before(file.head_ns()) {
                units.end_unit();
            }
            units.add(file);
        }
        units.end_unit();
        let makes_answers = units.changes_records() || units.changes_answers(known.as_ref());
        let files_to_read = units.files_to_read;
        let files = point.files.len() + point.unopened.len();
        PlannedPoint { point: point.name.clone(), files, bytes: point.bytes(), files_to_read, makes_answers }
    }
}

impl PlannedUnits<'_> {
    fn add(&mut self, file: FoundFile) {
        match file {
            FoundFile::Known(known) if !known.has_packets() => {}
            FoundFile::New { path, head_ns: None, .. } => self.count(&path),
            FoundFile::Known(known) => {
                self.bounds.add(&known);
                self.present.push(FoundFile::Known(known));
            }
            new @ FoundFile::New { .. } => self.present.push(new),
        }
    }

    fn count(&mut self, path: &Path) {
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        self.files_to_read.push(PlannedFile { path: path.to_owned(), bytes });
    }

    fn end_unit(&mut self) {
        let present = mem::take(&mut self.present);
        if present.is_empty() || self.find(&present).is_some() {
            return;
        }
        self.is_unknown = true;
        for file in &present {
            self.count(file.path());
        }
    }

    /// Finds the unit of these files, if it is there.
    fn find(&mut self, files: &[FoundFile]) -> Option<()> {
        let known = files.iter().map(|file| match file {
            FoundFile::Known(known) => Some(known.clone()),
            FoundFile::New { .. } => None,
        });
        let mut captures = known.collect::<Option<Vec<_>>>().filter(|_| !self.is_unknown)?;
        let key = records_key(&self.run.packet_stages, &captures, self.state.as_deref()).ok()?;
        let unit = self.store.find(&unit_name(captures.first()?.head_ns, &key), &key)?;
        self.state = unit.state.map(|state| state.digest);
        self.captures.append(&mut captures);
        Some(())
    }

    fn changes_records(&self) -> bool {
        let has_end = |state: &String| {
            let key = end_key(state);
            self.store.find(&unit_name(None, &key), &key).is_some()
        };
        self.is_unknown || !self.state.as_ref().is_none_or(has_end)
    }

    fn changes_answers(&self, known: Option<&PointDescription>) -> bool {
        if self.captures.is_empty() {
            return false;
        }
        let Ok(key) = answers_key(self.run.pipeline, &self.captures, self.run.format) else {
            return true;
        };
        let known = known.and_then(|known| known.answers.as_ref());
        !known.is_some_and(|answers| self.run.are_same(answers, key.as_deref()))
    }
}
