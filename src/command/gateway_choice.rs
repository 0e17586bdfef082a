//! Which gateway captures are read for, where nobody names one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use sizeleak_model::ModelSet;
use sizeleak_pipeline::Pipeline;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::log::{LogFlags, say};
use sizeleak_survey::{SurveyRun, Verdict};

use super::failure::Failure;
use super::working_folder::WorkingFolder;

/// The stage that is told, and the key.
const STAGE: &str = "flow-filter";
const KEY: &str = "gateway";

/// Sets the gateway of a pipeline that has none: that of `sizeleak.toml`, or else of its models, or else the only one that
/// a survey of the captures finds. It is said which. The pipeline stays as it is where nothing is to be chosen.
///
/// # Errors
/// If no gateway or several are found.
pub(super) fn choose_gateway(pipeline: &mut Pipeline, log: &LogFlags) -> Result<(), Failure> {
    if !pipeline.has(STAGE) || pipeline.option(STAGE, KEY).is_some() {
        return Ok(());
    }
    let mut gateways = WorkingFolder::gateways(log)?;
    if gateways.is_empty() {
        let (found, reason) = match of_models(&pipeline.models()) {
            Some(found) => (found, "as the model's"),
            None => (vec![surveyed(pipeline.captures())?], "the only one that a survey finds"),
        };
        if !log.is_quiet() {
            say("sizeleak", &format!("gateway {}, {reason}", found.join(", ")));
        }
        gateways = found;
    }
    Ok(pipeline.set(STAGE, KEY, gateways)?)
}

/// The gateways that models are for, if each is for one. What is wrong with a model, the stages that use it say.
fn of_models(models: &[PathBuf]) -> Option<Vec<String>> {
    if models.is_empty() {
        return None;
    }
    let models = ModelSet::read(models).ok()?;
    let gateways = models.sections().iter().map(|model| Some(model.scope.gateway?.to_string()));
    let gateways: BTreeSet<String> = gateways.collect::<Option<_>>()?;
    Some(gateways.into_iter().collect())
}

/// The only address of captures that looks like a gateway.
fn surveyed(captures: Vec<PathBuf>) -> Result<String, Failure> {
    let missing = "`--gateway IP|CIDR` is missing: name the gateway of these captures";
    if captures.is_empty() || captures.iter().any(|capture| capture == Path::new("-")) {
        return Err(Failure::usage(anyhow!(
            "{missing}; `sizeleak survey CAPTURE` says which addresses look like gateways"
        )));
    }
    let run = SurveyRun { captures, recursive: true, gateways: Vec::new() };
    let report = run.survey(&Interrupt::on_signals()?, &mut |_| {})?.report;
    let likely = report.addresses.iter().filter(|address| address.verdict == Verdict::Likely);
    let likely: Vec<String> = likely.map(|address| address.address.to_string()).collect();
    match likely.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::usage(anyhow!("{missing}, as a survey finds no address that clearly looks like one"))),
        several => Err(Failure::usage(anyhow!("{missing}, as {} look like one", several.join(", ")))),
    }
}
