//! Processes one capture point: looks at its files, makes its records and its answers as far as they are not there, and
//! describes it. Or says what that would do, as far as it is known without reading more of a capture than its first
//! packet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::{io, thread};

use sizeleak_pipeline::Pipeline;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::Progress;
use sizeleak_text::TimeRange;

use crate::archive::answers;
use crate::archive::chain::{Chain, RecordMaker, UnitBounds};
use crate::archive::description::{
    AnswersDescription, CaptureFile, DescribedFile, FileVerdict, PartFormat, PointDescription, RecordsDescription,
};
use crate::archive::discovery::CapturePoint;
use crate::archive::found_file::FoundFile;
use crate::archive::layout::{Layout, remove_file};
use crate::archive::left_out::{Settling, Unprocessed, check_missing, judge};
use crate::archive::unit_store::{UnitDescription, UnitStore, answers_key, end_key, reading, records_key};

pub(crate) struct PointRun<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) packet_stages: Pipeline,
    pub(crate) format: PartFormat,
    pub(crate) forget: bool,
    pub(crate) settling: Settling,
    pub(crate) range: TimeRange,
    /// Whether the next capture is looked at while the present one is processed.
    pub(crate) looks_ahead: bool,
    pub(crate) progress: &'a Progress,
    /// Ends the run early. Pipelines, which set theirs when they fail, get that of a part.
    pub(crate) interrupt: &'a Interrupt,
    /// Held while files of a point move to their places: another point might remove a folder that is still empty.
    pub(crate) publishing: Mutex<()>,
    /// Points that are not processed now, by the digests of their captures.
    pub(crate) elsewhere: BTreeMap<String, String>,
}

struct PointRecords {
    files: Vec<DescribedFile>,
    units: Vec<UnitDescription>,
}

impl PointRun<'_> {
    /// After an error, units that were processed are kept for the next run, and so are earlier results, unless they were being
    /// replaced.
    pub(crate) fn process(&self, point: &CapturePoint) -> Result<(), Unprocessed> {
        let store = UnitStore::of(self.layout, &point.name);
        let known = PointDescription::read(self.layout, &point.name);
        let mut found = self.find(point, known.as_ref(), &store);
        let known_files = found.iter().filter(|file| !file.is_new);
        self.progress.add(known_files.filter_map(|file| Some(file.path().metadata().ok()?.len())).sum());
        if let Some(known) = &known {
            found = match self.check_missing(known, found) {
                Ok(found) => found,
                Err(why) => {
                    self.answer_again(known)?;
                    return Err(why);
                }
            };
        }
        let records = self.make_records(found, &store)?;
        let mut description = describe(point, &records);
        if description.records.is_some() {
            let captures: Vec<DescribedFile> =
                records.units.iter().flat_map(|unit| unit.captures.iter().cloned()).collect();
            let key = answers_key(self.pipeline, &captures, self.format)?;
            let known = known.and_then(|known| known.answers);
            description.answers = known.filter(|answers| self.are_same(answers, key.as_deref()));
            if description.answers.is_none() {
                self.make_answers(&mut description, &captures, key, &store)?;
            }
        } else {
            self.remove_results(&description).map_err(of_results)?;
        }
        if description.files.is_empty() {
            return Ok(self.layout.remove_records(&point.name).map_err(of_results)?);
        }
        description.write(self.layout).map_err(of_results)?;
        let names = description.records.map(|records| records.units).unwrap_or_default();
        Ok(store.keep_only(&names).map_err(of_results)?)
    }

    /// Makes the answers of a point again whose captures are gone, if they are those of another model or other options: its
    /// records are there. Where they are not, there are no answers any more.
    pub(crate) fn answer_again(&self, known: &PointDescription) -> Result<(), String> {
        let (Some(records), Some(answers)) = (&known.records, &known.answers) else { return Ok(()) };
        let store = UnitStore::of(self.layout, &known.point);
        let units = store.units(&records.units);
        let captures: Vec<DescribedFile> = units.iter().flat_map(|unit| unit.captures.iter().cloned()).collect();
        if units.len() != records.units.len() {
            return Ok(());
        }
        let key = answers_key(self.pipeline, &captures, self.format)?;
        if self.are_same(answers, key.as_deref()) {
            return Ok(());
        }
        let mut description = PointDescription { answers: None, ..known.clone() };
        if units.iter().all(|unit| store.has_records(unit)) {
            self.make_answers(&mut description, &captures, key, &store)?;
        } else {
            let _held = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
            answers::remove_parts(self.layout, &known.point, &BTreeSet::new()).map_err(of_results)?;
        }
        description.write(self.layout).map_err(of_results)
    }

    /// The files of a point in the order in which they are read: by their first packets, whatever their names, or by their
    /// paths where times are not used.
    pub(crate) fn find(
        &self,
        point: &CapturePoint,
        known: Option<&PointDescription>,
        store: &UnitStore<'_>,
    ) -> Vec<FoundFile> {
        let described = known.map(|known| known.files.clone()).unwrap_or_default();
        // What the point's own description says is later.
        let all = store.captures().into_iter().chain(described).filter(DescribedFile::is_same);
        let mut known: BTreeMap<PathBuf, DescribedFile> =
            all.map(|file| (PathBuf::from(&file.file.path), self.judged(file))).collect();
        let mut found: Vec<FoundFile> = point.files.iter().map(|path| self.find_file(path, &mut known)).collect();
        if is_by_time(self.pipeline) {
            found.sort_by(|one, other| (one.head_ns(), one.path()).cmp(&(other.head_ns(), other.path())));
        } else {
            found.sort_by(|one, other| one.path().cmp(other.path()));
        }
        found
    }

    /// A file; one that is growing is not opened.
    fn find_file(&self, path: &Path, known: &mut BTreeMap<PathBuf, DescribedFile>) -> FoundFile {
        let growing = if known.contains_key(path) { None } else { self.settling.growing(path) };
        match growing {
            Some(file) => FoundFile::known(DescribedFile::unread(file, None)),
            None => FoundFile::of(path, known),
        }
    }

    fn judged(&self, mut described: DescribedFile) -> DescribedFile {
        judge(&self.range, &mut described.file);
        described
    }

    fn look(&self, file: FoundFile) -> Result<DescribedFile, String> {
        if self.interrupt.is_set() {
            return Err("the run was stopped".to_owned());
        }
        file.look(self.progress).map(|described| self.judged(described))
    }

    fn make_records(&self, files: Vec<FoundFile>, store: &UnitStore<'_>) -> Result<PointRecords, String> {
        let heads: Vec<Option<i64>> = files.iter().map(FoundFile::head_ns).collect();
        let look = |file: FoundFile| self.look(file);
        if !self.looks_ahead {
            return self.process_units(&heads, files.into_iter().map(look), store);
        }
        thread::scope(|scope| {
            // Without room, so that no more than one is looked at ahead.
            let (sender, looked) = sync_channel(0);
            scope.spawn(move || {
                // Nobody receives after an error.
                files.into_iter().map(look).try_for_each(|file| sender.send(file)).ok();
            });
            self.process_units(&heads, looked.into_iter(), store)
        })
    }

    /// Makes the records of files with these heads, which are looked at one after another.
    fn process_units(
        &self,
        heads: &[Option<i64>],
        mut looks: impl Iterator<Item = Result<DescribedFile, String>>,
        store: &UnitStore<'_>,
    ) -> Result<PointRecords, String> {
        let (stages, progress, interrupt) = (&self.packet_stages, self.progress, self.interrupt);
        let maker = RecordMaker { store, stages, progress, interrupt };
        let mut chain = Chain::new(maker, UnitBounds::new(is_by_time(self.pipeline)));
        let mut files = Vec::new();
        for head_ns in heads {
            if chain.bounds.is_before(*head_ns) {
                chain.end_unit()?;
            }
            let Some(looked) = looks.next() else { return Err("a thread that reads a capture has failed".to_owned()) };
            let file = looked?;
            if file.has_packets() {
                self.check_elsewhere(&file.file)?;
                chain.add(file.clone());
            } else {
                self.progress.add(file.file.bytes.unwrap_or_default());
            }
            files.push(file);
            self.progress.add_files(1);
        }
        Ok(PointRecords { files, units: chain.end()? })
    }

    fn make_answers(
        &self,
        description: &mut PointDescription,
        captures: &[DescribedFile],
        key: Option<String>,
        store: &UnitStore<'_>,
    ) -> Result<(), String> {
        let (layout, name) = (self.layout, description.point.clone());
        let units = description.records.iter().flat_map(|records| &records.units);
        let records: Vec<PathBuf> = units.map(|unit| store.records(unit)).collect();
        let pipeline = reading(self.pipeline, captures)?;
        let made = answers::make(layout, &pipeline, &name, &records, key, self.format, &self.interrupt.of_part())?;
        description.write(layout).map_err(of_results)?;
        let _held = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        description.answers = Some(made.publish(layout, &name).map_err(of_results)?);
        Ok(())
    }

    fn remove_results(&self, description: &PointDescription) -> io::Result<()> {
        let _held = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        remove_file(&self.layout.description(&description.point))?;
        answers::remove_parts(self.layout, &description.point, &BTreeSet::new())
    }

    pub(crate) fn are_same(&self, answers: &AnswersDescription, key: Option<&str>) -> bool {
        key.is_some() && answers.key.as_deref() == key && answers::are_there(self.layout, answers)
    }

    /// Checks that no capture is missing whose packets are in the results. Those that may have been renamed are found by
    /// their digests: all files are looked at then.
    fn check_missing(&self, known: &PointDescription, found: Vec<FoundFile>) -> Result<Vec<FoundFile>, Unprocessed> {
        let is_growing = |file: &FoundFile| file.described.file.verdict == FileVerdict::Growing;
        if self.forget && !found.iter().any(is_growing) {
            return Ok(found);
        }
        // One that has grown has the same beginning, but may be outside of the range by now. One that is smaller may have
        // lost packets.
        let may_be_there = |file: &&FoundFile| {
            if file.is_new { self.range.is_everything() } else { file.described.file.is_capture() }
        };
        let there = found.iter().filter(may_be_there);
        let sizes: BTreeMap<_, _> =
            there.map(|file| ((&file.described.file.path, file.head_ns()), file.described.file.bytes)).collect();
        let is_there = |DescribedFile { file, head_ns, .. }: &DescribedFile| {
            sizes.get(&(&file.path, *head_ns)).is_some_and(|bytes| *bytes >= file.bytes)
        };
        if known.files.iter().filter(|file| file.has_packets()).all(is_there) {
            return Ok(found);
        }
        let files = found.into_iter().map(|file| self.look(file)).collect::<Result<Vec<_>, _>>()?;
        check_missing(self.forget, known, &files)?;
        Ok(files.into_iter().map(FoundFile::known).collect())
    }

    fn check_elsewhere(&self, file: &CaptureFile) -> Result<(), String> {
        match file.blake3.as_ref().and_then(|digest| self.elsewhere.get(digest)) {
            Some(other) => Err(format!(
                "{} is in the results already, as a capture of the point `{other}`: name folders as before, or write \
                 to another folder",
                file.path
            )),
            None => Ok(()),
        }
    }
}

pub(crate) fn is_by_time(pipeline: &Pipeline) -> bool {
    pipeline.option("capture", "order").and_then(|order| order.as_str()).is_none_or(|order| order == "time")
}

fn describe(point: &CapturePoint, made: &PointRecords) -> PointDescription {
    let unopened = point.unopened.iter().map(|file| DescribedFile::unread(file.clone(), None));
    let mut files: Vec<DescribedFile> = made.files.iter().cloned().chain(unopened).collect();
    files.sort_by(|one, other| one.file.path.cmp(&other.file.path));
    let records = (!made.units.is_empty()).then(|| RecordsDescription {
        units: made.units.iter().map(|unit| unit.name.clone()).collect(),
        records: made.units.iter().map(|unit| unit.records).sum(),
    });
    let (point, version) = (point.name.clone(), env!("CARGO_PKG_VERSION").to_owned());
    PointDescription { point, version, files, records, answers: None }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn of_results(error: io::Error) -> String {
    format!("the results cannot be written: {error}")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPoint {
    pub point: String,
    pub files: usize,
    pub bytes: u64,
    /// How many of them are read, at most: those that are new or have changed, and those whose flows may begin differently
    /// because of these.
    pub files_to_read: usize,
    pub bytes_to_read: u64,
    /// Whether its answers are rebuilt, from the records that are kept if no file is read.
    pub makes_answers: bool,
}

impl PointRun<'_> {
    pub(crate) fn plan(&self, point: &CapturePoint) -> PlannedPoint {
        let store = UnitStore::of(self.layout, &point.name);
        let known = PointDescription::read(self.layout, &point.name);
        let mut bounds = UnitBounds::new(is_by_time(self.pipeline));
        let (mut units, mut unread): (Vec<Vec<FoundFile>>, Vec<FoundFile>) = (Vec::new(), Vec::new());
        for file in self.find(point, known.as_ref(), &store) {
            let is_before = bounds.is_before(file.head_ns());
            if file.is_new && file.head_ns().is_none() {
                unread.push(file);
            } else if file.is_new || file.described.has_packets() {
                // Of a new one the last packet is not known.
                bounds.add(&file.described);
                match units.last_mut().filter(|_| !is_before) {
                    Some(unit) => unit.push(file),
                    None => units.push(vec![file]),
                }
            }
        }
        let (mut captures, mut state) = (Vec::new(), None);
        // Behind a unit whose state is not known everything is read.
        let mut is_unknown = false;
        for unit in units {
            let known = self.find_unit(&unit, state.as_deref(), &store).filter(|_| !is_unknown);
            if let Some((unit, of_unit)) = known {
                state = unit.state.map(|state| state.digest);
                captures.extend(of_unit);
            } else {
                is_unknown = true;
                unread.extend(unit);
            }
        }
        let has_end = |state: &String| store.find(None, &end_key(state)).is_some();
        let changes_records = is_unknown || !state.as_ref().is_none_or(has_end);
        let answers = known.as_ref().and_then(|known| known.answers.as_ref());
        let has_same = |key: Option<String>| answers.is_some_and(|answers| self.are_same(answers, key.as_deref()));
        let has_answers =
            || captures.is_empty() || answers_key(self.pipeline, &captures, self.format).is_ok_and(has_same);
        let bytes = unread.iter().filter_map(|file| Some(file.path().metadata().ok()?.len()));
        PlannedPoint {
            point: point.name.clone(),
            files: point.files.len() + point.unopened.len(),
            bytes: point.bytes(),
            files_to_read: unread.len(),
            bytes_to_read: bytes.sum(),
            makes_answers: changes_records || !has_answers(),
        }
    }

    /// The unit of these files behind a state, with its captures as they are described now.
    fn find_unit(
        &self,
        files: &[FoundFile],
        state: Option<&str>,
        store: &UnitStore<'_>,
    ) -> Option<(UnitDescription, Vec<DescribedFile>)> {
        let known = files.iter().map(|file| (!file.is_new).then(|| file.described.clone()));
        let captures = known.collect::<Option<Vec<_>>>()?;
        let key = records_key(&self.packet_stages, &captures, state).ok()?;
        Some((store.find(captures.first()?.head_ns, &key)?, captures))
    }
}
