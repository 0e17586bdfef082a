//! Processes one capture point: looks at its files, makes its records and its answers as far as they are not there, and
//! describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use blake3::{Hash, Hasher};
use sizeleak_pipeline::Pipeline;
use sizeleak_runtime::Interrupt;
use sizeleak_telemetry::Progress;

use crate::answers;
use crate::capture_file::{CaptureFile, FileState};
use crate::description::{AnswersDescription, DescribedFile, PointDescription, RecordsDescription};
use crate::discovery::CapturePoint;
use crate::keys::PointKeys;
use crate::layout::Layout;
use crate::part_format::PartFormat;
use crate::records;

/// What all points have in common.
pub(crate) struct PointRun<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) format: PartFormat,
    /// The digest of the running program.
    pub(crate) program: Hash,
    /// Whether captures that are gone are given up with what was found in them.
    pub(crate) forget: bool,
    pub(crate) progress: &'a Progress,
    /// Ends the run early.
    pub(crate) interrupt: &'a Interrupt,
    /// Held while files of a point move to their places: another point might remove a folder that is still empty.
    pub(crate) publishing: Mutex<()>,
    /// Points that are not processed now, by the digests of their captures.
    pub(crate) elsewhere: BTreeMap<String, String>,
}

/// What a point still needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Everything is there.
    Nothing,
    /// The records are there.
    Answers,
    /// Its captures are read.
    Records,
}

impl PointRun<'_> {
    /// Processes a point.
    ///
    /// # Errors
    /// One sentence. Earlier results are kept unless they were being replaced; then the point is processed again by the
    /// next run.
    pub(crate) fn process(&self, point: &CapturePoint) -> Result<(), String> {
        let known = PointDescription::read(self.layout, &point.name);
        let mut description = self.look_at(point, known.as_ref());
        if let Some(known) = &known {
            self.check_gone(known, &description)?;
        }
        self.check_elsewhere(&description)?;
        let captures = captures(&description, self.is_in_given_order());
        if captures.is_empty() {
            self.clear(&description).map_err(of_results)?;
            return Ok(());
        }
        let (pipeline, keys) = self.keys(&captures)?;
        if let Some(known) = known {
            self.keep(known, &keys, &mut description);
        }
        let target = self.layout.records(&point.name);
        if description.records.is_some() {
            self.progress.add(captures.iter().map(|capture| capture.bytes).sum());
        } else {
            let is_damaged = captures.iter().any(|capture| capture.is_damaged);
            let (progress, interrupt) = (self.progress, self.interrupt);
            let (file, made) =
                records::make(self.layout, &pipeline, &target, &keys.records, is_damaged, progress, interrupt)?;
            check_unchanged(&description)?;
            // What it describes is being replaced.
            remove(&self.layout.description(&point.name)).map_err(of_results)?;
            file.keep_as(&target).map_err(of_results)?;
            description.records = Some(made);
        }
        if description.answers.is_none() {
            let (layout, name) = (self.layout, &point.name);
            let made = answers::make(layout, &pipeline, name, &target, &keys, self.format, self.interrupt)?;
            description.write(layout).map_err(of_results)?;
            let _held = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
            description.answers = Some(made.publish(layout, name).map_err(of_results)?);
        }
        description.write(self.layout).map_err(of_results)
    }

    /// Whether captures are read one after another, whatever the times of their packets.
    fn is_in_given_order(&self) -> bool {
        self.pipeline.option("capture", "order").and_then(|order| order.as_str()).is_some_and(|order| order != "time")
    }

    /// Describes a point without a capture, and removes what there was of it.
    fn clear(&self, description: &PointDescription) -> io::Result<()> {
        let _held = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        remove(&self.layout.description(&description.point))?;
        answers::remove_parts(self.layout, &description.point, &BTreeSet::new())?;
        remove(&self.layout.records(&description.point))?;
        description.write(self.layout)
    }

    /// Keeps the records and the answers that would come out again.
    fn keep(&self, known: PointDescription, keys: &PointKeys, description: &mut PointDescription) {
        let target = self.layout.records(&description.point);
        let is_same = |records: &RecordsDescription| records.key == keys.records && has_length(&target, records.bytes);
        let Some(records) = known.records.filter(is_same) else { return };
        description.answers = known.answers.filter(|answers| self.are_same(answers, keys));
        // They are read only for new answers.
        let is_sound = description.answers.is_some() || has_digest(&target, &records.digest);
        description.records = Some(records).filter(|_| is_sound);
    }

    /// Whether the same answers would come out, and are all there.
    fn are_same(&self, answers: &AnswersDescription, keys: &PointKeys) -> bool {
        let root = self.layout.identifications();
        keys.answers.is_some()
            && answers.key == keys.answers
            && answers.parts.iter().all(|(part, bytes)| has_length(&root.join(part), *bytes))
    }

    /// What a point needs, as far as that is known without reading a capture.
    pub(crate) fn need(&self, point: &CapturePoint) -> Need {
        let Some(known) = PointDescription::read(self.layout, &point.name) else { return Need::Records };
        let known_files = known.known_files();
        let files = point.files.iter().map(|path| known_files.get(path.as_path()).map(|file| (*file).clone()));
        let Some(files) = files.collect::<Option<Vec<_>>>() else { return Need::Records };
        let description = PointDescription { files, ..known.clone() };
        let captures = captures(&description, self.is_in_given_order());
        if captures.is_empty() {
            return Need::Nothing;
        }
        let Ok((_, keys)) = self.keys(&captures) else { return Need::Records };
        let target = self.layout.records(&point.name);
        match (&known.records, &known.answers) {
            (Some(records), _) if records.key != keys.records || !has_length(&target, records.bytes) => Need::Records,
            (Some(_), Some(answers)) if self.are_same(answers, &keys) => Need::Nothing,
            (Some(_), _) => Need::Answers,
            (None, _) => Need::Records,
        }
    }

    /// Looks at every file; those that have not changed are known.
    fn look_at(&self, point: &CapturePoint, known: Option<&PointDescription>) -> PointDescription {
        let known = known.map(PointDescription::known_files).unwrap_or_default();
        let look = |path: &PathBuf| {
            if let Some(described) = known.get(path.as_path()) {
                self.progress.add(described.file.bytes.unwrap_or_default());
                return (*described).clone();
            }
            // Before it is read: a file that grows meanwhile is found out.
            let state = FileState::of(path).ok();
            DescribedFile { file: CaptureFile::inspect(path, self.progress), state }
        };
        let mut files: Vec<DescribedFile> = point.files.iter().map(look).collect();
        files.extend(point.unopened.iter().map(|file| DescribedFile { file: file.clone(), state: None }));
        files.sort_by(|one, other| one.file.path.cmp(&other.file.path));
        let (point, version) = (point.name.clone(), env!("CARGO_PKG_VERSION").to_owned());
        PointDescription { point, version, files, records: None, answers: None }
    }

    /// Checks that no capture is gone whose packets are in the results. One that was renamed or has grown is not gone;
    /// one that was overwritten is.
    fn check_gone(&self, known: &PointDescription, now: &PointDescription) -> Result<(), String> {
        let captures = || now.files().filter(|file| file.is_capture());
        let begun: BTreeSet<_> = captures().map(|file| (&file.path, file.first_ns)).collect();
        let digests: BTreeSet<_> = captures().map(|file| &file.sha256).collect();
        let is_there =
            |gone: &CaptureFile| begun.contains(&(&gone.path, gone.first_ns)) || digests.contains(&gone.sha256);
        let gone: Vec<&CaptureFile> = known.files().filter(|file| file.packets > 0 && !is_there(file)).collect();
        match gone.first() {
            Some(first) if !self.forget => Err(format!(
                "{} of its captures are gone, such as {}: its results stay as they are; `--forget` rebuilds them \
                 without what was found there",
                gone.len(),
                first.path
            )),
            _ => Ok(()),
        }
    }

    /// Checks that no capture is in the results already, by another name of the folder it is in.
    fn check_elsewhere(&self, description: &PointDescription) -> Result<(), String> {
        let found = description.files().find_map(|file| Some((file, self.elsewhere.get(file.sha256.as_ref()?)?)));
        match found {
            Some((file, other)) => Err(format!(
                "{} is in the results already, as a capture of the point `{other}`: name folders as before, or write \
                 to another folder",
                file.path
            )),
            None => Ok(()),
        }
    }

    /// The pipeline over captures, and its keys.
    fn keys(&self, captures: &[PointCapture]) -> Result<(Pipeline, PointKeys), String> {
        let digests: BTreeMap<PathBuf, Hash> =
            captures.iter().map(|capture| (capture.path.clone(), capture.digest)).collect();
        let files: Vec<PathBuf> = captures.iter().map(|capture| capture.path.clone()).collect();
        let pipeline = records::reading(self.pipeline, &files).map_err(|error| error.to_string())?;
        let keys = PointKeys::of(&pipeline, &digests, self.program, self.format)?;
        Ok((pipeline, keys))
    }
}

/// A capture that is read.
struct PointCapture {
    path: PathBuf,
    digest: Hash,
    bytes: u64,
    is_damaged: bool,
}

/// The captures of a point: by their first packets, whatever their names, or by their paths where times are not used.
fn captures(description: &PointDescription, by_path: bool) -> Vec<PointCapture> {
    let mut files: Vec<&CaptureFile> = description.files().filter(|file| file.is_capture()).collect();
    if !by_path {
        files.sort_by(|one, other| (one.first_ns, &one.sha256).cmp(&(other.first_ns, &other.sha256)));
    }
    let capture = |file: &CaptureFile| {
        let digest = Hash::from_hex(file.sha256.as_deref()?).ok()?;
        let (path, bytes) = (PathBuf::from(&file.path), file.bytes.unwrap_or_default());
        Some(PointCapture { path, digest, bytes, is_damaged: file.is_failure() })
    };
    files.into_iter().filter_map(capture).collect()
}

/// Checks that no file was written while it was read.
fn check_unchanged(description: &PointDescription) -> Result<(), String> {
    let is_changed = |described: &&DescribedFile| {
        described.state.is_some_and(|state| FileState::of(Path::new(&described.file.path)).ok() != Some(state))
    };
    match description.files.iter().find(is_changed) {
        Some(DescribedFile { file, .. }) => {
            Err(format!("{} has changed while it was read: run again once it is complete", file.path))
        }
        None => Ok(()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn of_results(error: io::Error) -> String {
    format!("the results cannot be written: {error}")
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn has_length(path: &Path, bytes: u64) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == bytes)
}

fn has_digest(path: &Path, digest: &str) -> bool {
    let read = File::open(path).and_then(|file| Ok(Hasher::new().update_reader(file)?.finalize()));
    read.is_ok_and(|read| read.to_string() == digest)
}
