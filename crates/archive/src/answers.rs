//! The answers of a point: the stages behind the records, and the partitions they fill.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sizeleak_frame::{Frame, FrameSink};
use sizeleak_pipeline::{ConfigError, Pipeline, PreparedRun, RunEnding, SavedStream};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::{Tally, log};

use crate::description::{AnswersDescription, PartFormat};
use crate::layout::{Layout, has_length, remove_file};
use crate::partitions::Partitions;

const COMMAND_STAGE: &str = "command-segmenter";

/// Answers whose parts are written, but not where they belong.
pub(crate) struct StagedAnswers {
    /// What they are, without `parts`.
    description: AnswersDescription,
    /// The places of the parts below `identifications`, and where they are now.
    parts: Vec<(PathBuf, PathBuf)>,
}

/// The most parcels of frames that wait between two stages: answers with all their candidates are large.
const MAX_WAITING: usize = 1;

/// The stage whose output records are.
const RECORD_STAGE: &str = "record-sizer";

/// Runs the stages behind the one that makes records over those of a point, which are in the files `records`, one after
/// another. `key` is what the answers depend on.
pub(crate) fn make(
    layout: &Layout,
    pipeline: &Pipeline,
    point: &str,
    records: &[PathBuf],
    key: Option<String>,
    format: PartFormat,
    interrupt: &Interrupt,
) -> Result<StagedAnswers, String> {
    let mut pipeline = pipeline.clone();
    pipeline.queue_depth = pipeline.queue_depth.min(MAX_WAITING);
    let folder = layout.staging().join(point);
    let of_folder = |error: io::Error| format!("{}: {error}", folder.display());
    let run = prepared(&pipeline, records, interrupt).map_err(|error| error.to_string())?;
    fs::create_dir(&folder).map_err(of_folder)?;
    let partitions = Partitions::new(folder.clone(), format);
    let mut sink = AnswerSink { partitions, identifications: 0, notices: Tally::default() };
    let report = run.run(&interrupt.of_part(), &mut sink).map_err(|error| error.to_string())?;
    if report.ending != RunEnding::Done {
        return Err("the run was stopped".to_owned());
    }
    let stages = report.summary.map(|summary| summary.stages).unwrap_or_default();
    let segmenter = stages.iter().find(|stage| stage.stage == COMMAND_STAGE);
    let commands = segmenter.and_then(|stage| stage.counters.get("commands").copied());
    let AnswerSink { partitions, identifications, notices } = sink;
    let parts = partitions.finish(&part_name(point, format)).map_err(of_folder)?;
    let notices = notices.iter().map(|(what, times)| (what.to_owned(), times)).collect();
    let description = AnswersDescription { key, format, commands, identifications, notices, parts: BTreeMap::new() };
    Ok(StagedAnswers { description, parts })
}

/// The stages behind the one that makes records, over these records.
fn prepared(pipeline: &Pipeline, records: &[PathBuf], interrupt: &Interrupt) -> Result<PreparedRun, ConfigError> {
    let stream = SavedStream::joined(records, interrupt)?;
    let stages = pipeline.resolved_stages();
    let record_stage = stages.iter().position(|stage| stage.entry.name == RECORD_STAGE).unwrap_or_default();
    pipeline.prepare_from(Some((record_stage, stream)))
}

fn part_name(point: &str, format: PartFormat) -> String {
    format!("part-{point}.{}", format.extension())
}

impl StagedAnswers {
    /// Moves the parts to their places, and removes those of the point that are left of earlier answers.
    pub(crate) fn publish(mut self, layout: &Layout, point: &str) -> io::Result<AnswersDescription> {
        let root = layout.identifications();
        let mut places = BTreeSet::new();
        for (part, now) in self.parts {
            let place = root.join(&part);
            self.description.parts.insert(part.to_string_lossy().into_owned(), now.metadata()?.len());
            Layout::publish(&now, &place)?;
            places.insert(place);
        }
        remove_parts(layout, point, &places)?;
        fs::remove_dir(layout.staging().join(point))?;
        Ok(self.description)
    }
}

pub(crate) fn are_there(layout: &Layout, answers: &AnswersDescription) -> bool {
    let mut parts = answers.parts.iter();
    parts.all(|(place, bytes)| has_length(&layout.identifications().join(place), *bytes))
}

pub(crate) fn remove_parts(layout: &Layout, point: &str, kept: &BTreeSet<PathBuf>) -> io::Result<()> {
    for gateway in folders_in(&layout.identifications())? {
        for day in folders_in(&gateway)? {
            let names = PartFormat::ALL.iter().map(|format| day.join(part_name(point, *format)));
            for part in names.filter(|part| !kept.contains(part)) {
                remove_file(&part)?;
            }
            // One that holds something stays.
            _ = fs::remove_dir(&day);
        }
        _ = fs::remove_dir(&gateway);
    }
    Ok(())
}

fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        // Another point has removed it because it was empty.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    Ok(paths?.into_iter().filter(|path| path.is_dir()).collect())
}

struct AnswerSink {
    partitions: Partitions,
    identifications: u64,
    notices: Tally,
}

impl FrameSink for AnswerSink {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        for frame in frames.drain(..) {
            match frame {
                Frame::Flow(flow) => self.partitions.describe_flow(flow),
                Frame::Session(session) => self.partitions.describe_session(session),
                Frame::Notice(notice) => {
                    self.notices.add(&notice.what, 1);
                    log::notice(&notice);
                }
                Frame::Identification(answer) => {
                    self.identifications += 1;
                    self.partitions.add(answer)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
