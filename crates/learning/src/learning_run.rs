//! From captures, which are named by their digests, to a model, including how commands are distinguished from other
//! records.
//!
//! The labelled commands are first found by algorithms that know nothing of the gateway. The commands of the algorithm
//! that fits the labels best show which records are noise; with that knowledge the commands are found again, and the
//! model is learned from these. So a model is learned from the commands that it will later be applied to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use sizeleak_command_segmenter::{CommandDirection, LabelledTraffic, Options, learn_reply_windows};
use sizeleak_frame::{Command, Flow, Frame, Record};
use sizeleak_model::{CaptureDigest, FitMethod, Model, ModelSet, NoiseStatistics, Provenance, ReplyWindows, Scope};
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError};
use tempfile::NamedTempFile;
use toml::{Table, Value};

use crate::error::{LearningError, Result};
use crate::labels::{LabelFile, Tolerance};
use crate::observed_commands::{
    ObservedCommand, ObservedCommands, ObservedService, OnNotice, SEGMENTER, command_times, observe_commands, patient,
    with_algorithm,
};
use crate::sections::on_two_connections;
use crate::size_doubts::DOUBTFUL_SHARE;
use crate::training_set::{LearnedModel, LearningSettings, TrainingSet};

/// The algorithm that needs a model.
const LEARNED: &str = "learned";

/// The algorithm that is used with a model without noise.
const DEFAULT: &str = "adaptive";

/// If more than one label of so many has no command, commands are looked for otherwise: fewer are mistakes of the labels.
const MAX_LOST: usize = 20;

/// Options that find commands which the usual ones do not: small ones, those that answer what the gateway sends all the
/// time, and those of two messages.
const OTHER_OPTIONS: [&[(&str, &str)]; 3] =
    [&[("min-size", "1")], &[("answer-within", "0ms")], &[("algorithm", "gap"), ("gap", "150ms")]];

/// Sizes are looked for in commands without labels if there are at least so many of them…
const MIN_UNLABELLED: usize = 60;

/// …and so many for each label.
const MIN_FOR_EACH_LABEL: usize = 2;

/// Noise is learned from at most this many records.
const MAX_RECORDS: usize = 1 << 22;

/// Everything that a model is learned from, except the commands in the captures.
#[derive(Debug, Clone)]
pub struct LearningRun<'a> {
    pub labels: &'a LabelFile,
    pub input: &'a PipelineInput,
    pub tolerance: Tolerance,
    pub settings: &'a LearningSettings,
}

#[derive(Debug)]
pub struct LearningOutcome {
    /// The sections of the model, at least one, the one with the most labels first; or why there is none.
    pub learned: Result<Vec<LearnedModel>, LearningError>,
    pub commands: Vec<ObservedCommand>,
    /// The labels, on the clock of the commands.
    pub labels: LabelFile,
    pub services: Vec<ObservedService>,
    /// What is wrong with the captures. Everything before the damage was learned from.
    pub damage: Option<RunError>,
}

/// The records of the captures that noise is learned from.
#[derive(Debug, Default)]
struct ObservedTraffic {
    records: Vec<Record>,
    flows: Vec<Flow>,
    /// How many further records there are.
    surplus: u64,
}

impl LearningOutcome {
    /// The section with the most labels; `None` without a model.
    pub fn first(&self) -> Option<&LearnedModel> {
        self.learned.as_ref().ok()?.first()
    }

    pub fn first_mut(&mut self) -> Option<&mut LearnedModel> {
        self.learned.as_mut().ok()?.first_mut()
    }

    /// Whether labels leave open what the commands without labels may tell.
    pub fn needs_more(&self, settings: &LearningSettings) -> bool {
        let rows = self.labels.labels().rows.len();
        let unlabelled = self.commands.len().saturating_sub(rows);
        settings.padding.is_none()
            && settings.method == FitMethod::Robust
            && self.first().is_none_or(|learned| learned.leaves_sizes_open)
            && unlabelled >= MIN_UNLABELLED.max(MIN_FOR_EACH_LABEL * rows)
    }

    /// Says something of it, if there is a model.
    pub fn remark(&mut self, remark: String) {
        if let Some(learned) = self.first_mut() {
            learned.remarks.push(remark);
        }
    }

    /// The same, whose models name the options of a pipeline that their commands were found with.
    fn found_with(mut self, pipeline: &Pipeline) -> Self {
        for learned in self.learned.iter_mut().flatten() {
            learned.model.learned.found_with = deciding_options(pipeline);
        }
        self
    }

    /// How badly commands and labels fit.
    fn mismatches(&self) -> usize {
        self.first().map_or(usize::MAX, |learned| learned.mismatches)
    }

    fn commands_at<'a>(&self, indices: impl IntoIterator<Item = &'a usize>) -> Vec<Command> {
        let observed = indices.into_iter().filter_map(|at| self.commands.get(*at));
        observed.map(|observed| observed.command.clone()).collect()
    }

    /// Whether sums of sizes explain nearly all labels.
    fn is_explained(&self) -> bool {
        self.first().is_some_and(|section| {
            let explained = section.model.learned.commands as f64 / section.labels.max(1) as f64;
            !section.model.actions.is_empty() && explained >= 1.0 - DOUBTFUL_SHARE
        })
    }

    /// Whether they fit, but for mistakes of the labels.
    fn labels_fit(&self) -> bool {
        self.mismatches() <= self.labels.labels().rows.len() / MAX_LOST
    }
}

impl LearningRun<'_> {
    /// Learns a model from the commands that a pipeline, which ends with the segmenter, finds in the captures. Notices
    /// of the first run over the captures go to `on_notice`.
    ///
    /// # Errors
    /// If the pipeline does not run. That no model could be learned is part of the outcome.
    pub fn learn(&self, pipeline: &Pipeline, on_notice: &mut OnNotice<'_>) -> Result<LearningOutcome> {
        let mut outcome = self.learn_by_algorithm(pipeline, on_notice)?.found_with(pipeline);
        for options in OTHER_OPTIONS {
            let is_set = |(key, _): &(&str, &str)| pipeline.option(SEGMENTER, key).is_some();
            if outcome.labels_fit() || !pipeline.has(SEGMENTER) || options.iter().any(is_set) {
                continue;
            }
            let mut other_pipeline = pipeline.clone();
            let text = |(key, value): &(&str, &str)| format!("{SEGMENTER}.{key}={value}");
            let texts: Vec<String> = options.iter().map(text).collect();
            texts.iter().try_for_each(|text| other_pipeline.set_text(text))?;
            let mut other = self.learn_by_algorithm(&other_pipeline, &mut |_| {})?.found_with(&other_pipeline);
            if other.labels_fit() {
                other.remark(format!(
                    "commands are found with `--set {}`, since labels fit them badly without; the model says so, and every \
                     use of it follows",
                    texts.join(" --set ")
                ));
                outcome = other;
            }
        }
        if !outcome.is_explained()
            && let Some(cause) =
                on_two_connections(&outcome.labels, &outcome.commands, &outcome.services, self.tolerance)
        {
            outcome.learned = Err(self.labels.fault(cause).into());
        }
        Ok(outcome)
    }

    /// Learns from the commands of the algorithm that is set, or else of the one that fits the labels best.
    fn learn_by_algorithm(&self, pipeline: &Pipeline, on_notice: &mut OnNotice<'_>) -> Result<LearningOutcome> {
        let algorithm = pipeline.option(SEGMENTER, "algorithm").and_then(Value::as_str);
        let is_chosen = algorithm.is_some_and(|algorithm| algorithm != LEARNED);
        if is_chosen || !pipeline.has(SEGMENTER) || !self.input.has_records(pipeline)? {
            // The model holds for the commands of this algorithm, and no other is to be used with it.
            return self.learn_without_noise(pipeline, on_notice);
        }
        let options = segmenter_options(pipeline)?;
        if options.direction == Some(CommandDirection::Both) {
            // Noise is what one side sends besides commands.
            return self.learn_without_noise(pipeline, on_notice);
        }
        let mut best = self.learn_without_noise(&patient(pipeline)?, on_notice)?;
        for algorithm in ["gap", "record"] {
            if best.mismatches() > 0 {
                let other = self.learn_without_noise(&with_algorithm(pipeline, algorithm)?, &mut |_| {})?;
                best = if other.mismatches() < best.mismatches() { other } else { best };
            }
        }
        let traffic = self.traffic(pipeline)?;
        let windows = reply_windows(&traffic, &options, &best);
        let mut pipeline = pipeline.clone();
        if let Some(windows) = windows {
            pipeline.set(SEGMENTER, "reply-within", format!("{}ms", windows.within_ms))?;
            pipeline.set(SEGMENTER, "reply-gap", format!("{}ms", windows.gap_ms))?;
        }
        let mut outcome = self.refined_or_default(&pipeline, &traffic, &best)?;
        for learned in outcome.learned.iter_mut().flatten() {
            learned.model.reply_windows = windows;
        }
        Ok(outcome)
    }

    /// What is learned from the commands found with noise or, if these fit worse, by the default algorithm without it.
    fn refined_or_default(
        &self,
        pipeline: &Pipeline,
        traffic: &ObservedTraffic,
        best: &LearningOutcome,
    ) -> Result<LearningOutcome> {
        let refined = match self.learn_with_noise(pipeline, traffic, best)? {
            Some(refined) if refined.mismatches() == 0 => return Ok(refined),
            other => other,
        };
        let mut default = self.learn_without_noise(&with_algorithm(pipeline, DEFAULT)?, &mut |_| {})?;
        if let Some(refined) = refined.filter(|refined| refined.mismatches() <= default.mismatches()) {
            return Ok(refined);
        }
        // With a model without noise the default algorithm finds the commands, so the model is learned from those.
        default.remark(format!(
            "noise could not be learned well enough to find commands better than the segmenter's algorithm `{DEFAULT}`, which \
             is used with this model"
        ));
        Ok(default)
    }

    pub fn training_set<'a>(&'a self, labels: &'a LabelFile, commands: &'a [ObservedCommand]) -> TrainingSet<'a> {
        TrainingSet { labels, commands, tolerance: self.tolerance, settings: self.settings }
    }

    pub(crate) fn learn_without_noise(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut OnNotice<'_>,
    ) -> Result<LearningOutcome> {
        let observed = observe_commands(self.input, pipeline, on_notice)?;
        let labels = observed.aligned(self.labels, self.tolerance);
        let ObservedCommands { commands, services, seen, damage, .. } = observed;
        let learn = || {
            if commands.is_empty() {
                return Err(InputError::NoCommands(Box::new(seen)).into());
            }
            // Before the damage there need not be commands of all labels.
            if damage.is_none() {
                let times = command_times(&commands);
                labels.check_use(&labels.matching(&times, self.tolerance)?, &times, self.tolerance)?;
            }
            self.training_set(&labels, &commands).sections(&services)
        };
        Ok(LearningOutcome { learned: learn(), commands, labels, services, damage })
    }

    /// A model of some of the labels, over the same commands, with the noise that all labels taught.
    pub fn learn_from(&self, labels: &LabelFile, outcome: &LearningOutcome) -> Result<ModelSet> {
        let sections = self.training_set(labels, &outcome.commands).sections(&outcome.services)?;
        let known = outcome.learned.as_ref().map_or(&[][..], |learned| learned.as_slice());
        // How commands are found is what all labels teach.
        let with_noise = |model: Model| {
            let own = known.iter().find(|section| shares_service(&section.model.scope, &model.scope));
            let Some(LearnedModel { model: own, .. }) = own.or(known.first()) else { return model };
            let learned = Provenance { found_with: own.learned.found_with.clone(), ..model.learned };
            Model { noise: own.noise.clone(), reply_windows: own.reply_windows, learned, ..model }
        };
        let models = ModelSet::new(sections.into_iter().map(|section| with_noise(section.model)).collect());
        Ok(models.map_err(|fault| labels.fault(fault.to_string()))?)
    }

    /// Learns noise from the best outcome so far, and a model from the commands found with it; `None` without a model.
    fn learn_with_noise(
        &self,
        pipeline: &Pipeline,
        traffic: &ObservedTraffic,
        best: &LearningOutcome,
    ) -> Result<Option<LearningOutcome>> {
        let Ok(sections) = &best.learned else { return Ok(None) };
        let options = segmenter_options(pipeline)?;
        let with_noise = |section: &LearnedModel| {
            let noise = Some(self.noise(traffic, &options, best, section)?);
            Ok(Model { noise, ..section.model.clone() })
        };
        let models = sections.iter().map(with_noise).collect::<Result<_>>()?;
        let models = ModelSet::new(models).map_err(|fault| self.labels.fault(fault.to_string()))?;
        let file = temporary_model(&models)?;
        let mut pipeline = with_algorithm(pipeline, LEARNED)?;
        pipeline.set(SEGMENTER, "model", file.path().to_string_lossy().into_owned())?;
        let mut refined = self.learn_without_noise(&pipeline, &mut |_| {})?;
        for Model { scope, noise, .. } in refined.learned.iter_mut().flatten().map(|learned| &mut learned.model) {
            let is_own = |own: &&Model| own.scope.gateway == scope.gateway && shares_service(&own.scope, scope);
            // A section that only now stands out has no noise of its own.
            let Some(own) = models.sections().iter().find(is_own) else { return Ok(None) };
            noise.clone_from(&own.noise);
        }
        if traffic.surplus > 0 {
            let later = traffic.surplus;
            let remark = format!("noise is learned from the first {MAX_RECORDS} records, without {later} later ones");
            refined.remark(remark);
        }
        Ok(Some(refined))
    }

    /// The records of the captures, with their flows. Damage was reported with the first run.
    fn traffic(&self, pipeline: &Pipeline) -> Result<ObservedTraffic> {
        let mut traffic = ObservedTraffic::default();
        self.input.observe(&pipeline.before(SEGMENTER), &mut |_| {}, |frame| match frame {
            Frame::Record(record) if traffic.records.len() < MAX_RECORDS => traffic.records.push(record),
            Frame::Record(_) => traffic.surplus += 1,
            Frame::Flow(flow) => traffic.flows.push(*flow),
            _ => {}
        })?;
        Ok(traffic)
    }

    /// Which records of a section's services are noise, according to the commands that the section was learned from.
    fn noise(
        &self,
        traffic: &ObservedTraffic,
        options: &Options,
        outcome: &LearningOutcome,
        section: &LearnedModel,
    ) -> Result<NoiseStatistics> {
        let [commands, doubtful] =
            [&section.learned_from, &section.left_out].map(|indices| outcome.commands_at(indices));
        let services: Vec<&ObservedService> =
            section.services.iter().filter_map(|at| outcome.services.get(*at)).collect();
        let is_of =
            |one: &ObservedService, flow: &Flow| one.gateway == flow.gateway && one.addresses.contains(&flow.service);
        let is_own = |flow: &&Flow| services.iter().any(|service| is_of(service, flow));
        let flows: Vec<Flow> = traffic.flows.iter().filter(is_own).cloned().collect();
        let own: BTreeSet<u64> = flows.iter().map(|flow| flow.flow).collect();
        let records = traffic.records.iter().filter(|record| own.contains(&record.flow)).cloned();
        let traffic = LabelledTraffic {
            records: &records.collect::<Vec<Record>>(),
            flows: &flows,
            commands: &commands,
            doubtful: &doubtful,
            span: self.training_set(&outcome.labels, &outcome.commands).span(),
            labels_are_complete: self.settings.labels_are_complete,
            labels_fit: outcome.labels_fit(),
        };
        Ok(traffic.learn(&section.model, options)?)
    }
}

fn segmenter_options(pipeline: &Pipeline) -> Result<Options> {
    Ok(Options::deserialize(Value::Table(pipeline.options(SEGMENTER).cloned().unwrap_or_default()))?)
}

/// The options that are set and decide which commands there are, by stage.
fn deciding_options(pipeline: &Pipeline) -> BTreeMap<String, Table> {
    let of_sizer = [("record-sizer", &["plain-tcp", "burst-gap"][..]), (SEGMENTER, &Options::DECIDING)];
    let set = of_sizer.into_iter().map(|(stage, keys)| {
        let mut options = pipeline.options(stage).cloned().unwrap_or_default();
        // Which records are noise is part of the model.
        options.retain(|key, value| keys.contains(&key) && value.as_str() != Some(LEARNED));
        (stage.to_owned(), options)
    });
    set.filter(|(_, options)| !options.is_empty()).collect()
}

/// How long replies take: as the user says, or as the labelled commands show.
fn reply_windows(traffic: &ObservedTraffic, options: &Options, outcome: &LearningOutcome) -> Option<ReplyWindows> {
    if let Some(given) = options.reply_windows() {
        return Some(given);
    }
    let sections = outcome.learned.as_ref().ok()?;
    let commands = outcome.commands_at(sections.iter().flat_map(|section| &section.learned_from));
    learn_reply_windows(&traffic.records, &commands, options.min_size())
}

/// Whether two scopes have a service in common, and are both about commands or both about reports.
fn shares_service(one: &Scope, other: &Scope) -> bool {
    one.reports == other.reports
        && (one.services.is_empty() && other.services.is_empty()
            || one.services.iter().any(|service| other.services.contains(service)))
}

/// A model in a file that is deleted with the value: stages read their models from files.
pub fn temporary_model(models: &ModelSet) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("sizeleak-").suffix(".toml").tempfile()?;
    file.write_all(models.to_toml().as_bytes())?;
    Ok(file)
}

/// How many bytes are read at once.
const BLOCK: usize = 1 << 16;

/// The SHA-256 digests of the captures that a model is learned from, which people compare with those of other programs.
/// Of several, unreadable ones are left out: they teach nothing.
///
/// # Errors
/// If there is one, and it is a folder or cannot be read.
pub fn digest_captures(captures: &[PathBuf]) -> Result<Vec<CaptureDigest>, LearningError> {
    let digests = captures.iter().map(|capture| digest_capture(capture));
    if captures.len() > 1 { Ok(digests.flatten().collect()) } else { digests.collect() }
}

/// The name and digest of a capture file as it is on disk, compressed or not.
pub fn digest_capture(capture: &Path) -> Result<CaptureDigest, LearningError> {
    let fault = |fault: String| LearningError::File { file: capture.display().to_string(), fault };
    if capture.is_dir() {
        return Err(fault("it is a folder: name the captures in it".to_owned()));
    }
    let sha256 = file_sha256(capture).map_err(|error| fault(error.to_string()))?;
    let name = capture.file_name().unwrap_or(capture.as_os_str()).to_string_lossy().into_owned();
    Ok(CaptureDigest { name, sha256 })
}

/// The SHA-256 digest of a file, in hexadecimal digits.
fn file_sha256(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(BLOCK, File::open(path)?);
    let mut digest = Sha256::new();
    while let block @ [_, ..] = file.fill_buf()? {
        digest.update(block);
        let read = block.len();
        file.consume(read);
    }
    Ok(digest.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string does not fail.
        _ = write!(hex, "{byte:02x}");
        hex
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_sha_256() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        std::fs::write(&path, "abc").unwrap();
        // The example of FIPS 180-4.
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned();
        assert_eq!(digest_capture(&path).unwrap(), CaptureDigest { name: "a.pcap".into(), sha256 });
        std::fs::write(&path, vec![b'a'; 1_000_000]).unwrap();
        assert!(digest_capture(&path).unwrap().sha256.starts_with("cdc76e5c9914fb92"));
    }

    #[test]
    fn of_several_captures_those_that_cannot_be_read_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let [here, gone] = ["here.pcap", "gone.pcap"].map(|name| folder.path().join(name));
        std::fs::write(&here, "abc").unwrap();
        let digests = digest_captures(&[gone.clone(), here, folder.path().to_owned()]).unwrap();
        assert_eq!(digests.iter().map(|digest| &*digest.name).collect::<Vec<_>>(), ["here.pcap"]);
        assert!(digest_captures(&[gone]).is_err());
    }

    #[test]
    fn errors_name_the_file() {
        let error = |path: &str| digest_capture(Path::new(path)).unwrap_err().to_string();
        assert!(error("none/a.pcap").starts_with("none/a.pcap: "));
        assert!(error(".").contains("folder"));
    }
}
