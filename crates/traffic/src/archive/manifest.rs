//! The manifest: what became of every file and every point, a line of JSON each.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};
use sizeleak_frame::what;

use crate::archive::description::{CaptureFile, FileVerdict, PointDescription};
use crate::archive::layout::{ArchiveError, Layout};
use crate::archive::left_out::Unprocessed;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    pub points: Vec<ManifestPoint>,
    pub files: Vec<(String, CaptureFile)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestPoint {
    pub point: String,
    pub version: String,
    /// Why the last run did not process it, or what is missing; its earlier results may be there.
    pub fault: Option<String>,
    /// Why the last run left it as it was although nothing is wrong: one of its captures is growing again.
    #[serde(default)]
    pub waits: Option<String>,
    /// How many captures its records are made of.
    pub captures: u64,
    pub packets: u64,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    pub records: u64,
    /// The commands in them; `None` if that is not known.
    pub commands: Option<u64>,
    /// The answers to them; `None` if there are none yet.
    pub identifications: Option<u64>,
    pub notices: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Point(ManifestPoint),
    File(FileLine),
}

#[derive(Debug, Serialize, Deserialize)]
struct FileLine {
    point: String,
    version: String,
    #[serde(flatten)]
    file: CaptureFile,
}

impl Manifest {
    pub(crate) fn of(
        descriptions: BTreeMap<String, PointDescription>,
        unprocessed: &BTreeMap<String, Unprocessed>,
    ) -> Self {
        let mut manifest = Self::default();
        let undescribed = unprocessed.keys().filter(|point| !descriptions.contains_key(*point));
        let version = env!("CARGO_PKG_VERSION");
        let empty = |point: &String| PointDescription {
            point: point.clone(),
            version: version.to_owned(),
            ..PointDescription::default()
        };
        let undescribed: Vec<_> = undescribed.map(|point| (point.clone(), empty(point))).collect();
        let all: BTreeMap<_, _> = descriptions.into_iter().chain(undescribed).collect();
        for (point, description) in all {
            manifest.points.push(ManifestPoint::of(&description, unprocessed.get(&point)));
            let files = description.files.into_iter().map(|described| (point.clone(), described.file));
            manifest.files.extend(files);
        }
        manifest
    }

    pub fn read(out: &Path) -> Result<Self, ArchiveError> {
        let path = Layout::new(out).manifest();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ArchiveError::no_manifest(out));
            }
            text => text.map_err(ArchiveError::of_file(&path))?,
        };
        let mut manifest = Self::default();
        for line in text.lines() {
            let line = serde_json::from_str(line).map_err(|error| ArchiveError::of_file(&path)(error.into()))?;
            match line {
                Line::Point(point) => manifest.points.push(point),
                Line::File(line) => manifest.files.push((line.point, line.file)),
            }
        }
        Ok(manifest)
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), ArchiveError> {
        let path = layout.manifest();
        let written = self.lines().and_then(|text| layout.write(&path, text.as_bytes()));
        written.map_err(ArchiveError::of_file(&path))
    }

    /// A line of JSON for each point, and before it one for each of its files.
    pub fn lines(&self) -> io::Result<String> {
        let mut text = String::new();
        let mut files: BTreeMap<&str, Vec<&CaptureFile>> = BTreeMap::new();
        for (point, file) in &self.files {
            files.entry(point).or_default().push(file);
        }
        for point in &self.points {
            for file in files.remove(point.point.as_str()).unwrap_or_default() {
                let (of, version) = (point.point.clone(), point.version.clone());
                let line = Line::File(FileLine { point: of, version, file: file.clone() });
                text = text + &serde_json::to_string(&line)? + "\n";
            }
            text = text + &serde_json::to_string(&Line::Point(point.clone()))? + "\n";
        }
        Ok(text)
    }

    /// The files of which something is missing, with what is wrong.
    pub fn failed_files(&self) -> impl Iterator<Item = (&CaptureFile, String)> {
        let is_failed = |file: &CaptureFile| matches!(file.verdict, FileVerdict::Damaged | FileVerdict::Unreadable);
        let failed = self.files.iter().filter(move |(_, file)| is_failed(file));
        failed.map(|(_, file)| (file, file.fault().unwrap_or_default()))
    }

    /// The points that have packets, but none of a gateway.
    pub fn silent_points(&self) -> impl Iterator<Item = &str> {
        let silent = self.points.iter().filter(|point| point.is_silent());
        silent.map(|point| point.point.as_str())
    }

    /// Whether there are points with answers, and all of them are silent: the address is probably wrong.
    pub fn is_silent(&self) -> bool {
        let mut answered = self.points.iter().filter(|point| point.identifications.is_some()).peekable();
        answered.peek().is_some() && answered.all(ManifestPoint::is_silent)
    }

    pub fn count_of(&self, verdict: FileVerdict) -> usize {
        self.files.iter().filter(|(_, file)| file.verdict == verdict).count()
    }
}

impl ManifestPoint {
    fn is_silent(&self) -> bool {
        self.records == 0 && self.notices.contains_key(what::ABSENT)
    }

    fn of(description: &PointDescription, unprocessed: Option<&Unprocessed>) -> Self {
        let captures: Vec<&CaptureFile> = description.files().filter(|file| file.is_capture()).collect();
        let answers = description.answers.as_ref();
        let unfinished = || "its answers are not complete: run again".to_owned();
        let is_unfinished = description.records.is_some() && answers.is_none();
        Self {
            point: description.point.clone(),
            version: description.version.clone(),
            fault: unprocessed.and_then(Unprocessed::fault).or_else(|| is_unfinished.then(unfinished)),
            waits: unprocessed.and_then(Unprocessed::waits_for),
            captures: captures.len() as u64,
            packets: captures.iter().map(|file| file.packets).sum(),
            first_ns: captures.iter().filter_map(|file| file.first_ns).min(),
            last_ns: captures.iter().filter_map(|file| file.last_ns).max(),
            records: description.records.as_ref().map_or(0, |records| records.records),
            commands: answers.and_then(|answers| answers.commands),
            identifications: answers.map(|answers| answers.identifications),
            notices: answers.map(|answers| answers.notices.clone()).unwrap_or_default(),
        }
    }
}
