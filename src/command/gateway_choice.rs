//! Which gateway captures are read for, where nobody names one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use sizeleak_model::ModelSet;
use sizeleak_pipeline::Pipeline;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::log::say;
use sizeleak_survey::{SurveyRun, SurveyedAddress, Verdict};

use super::failure::Failure;

/// The stage that is told, and the key.
const STAGE: &str = "flow-filter";
const KEY: &str = "gateway";

/// So many addresses are described where none is clearly a gateway.
const SHOWN: usize = 3;

/// Sets the gateway of a pipeline that has none: that of its models, or else the only one that
/// a survey of the captures finds. It is said which. The pipeline stays as it is where nothing is to be chosen.
pub(super) fn choose_gateway(pipeline: &mut Pipeline) -> Result<(), Failure> {
    if let Some(chosen) = find_gateway(pipeline, &Interrupt::on_signals()?)? {
        say("sizeleak", &chosen);
    }
    Ok(())
}

/// Sets the gateway of a pipeline that has none: that of its models, or else the only one that a survey of its captures
/// finds. Returns which, in words; `None` where nothing is to be chosen.
pub(super) fn find_gateway(pipeline: &mut Pipeline, interrupt: &Interrupt) -> Result<Option<String>, Failure> {
    if !pipeline.has(STAGE) || pipeline.option(STAGE, KEY).is_some() {
        return Ok(None);
    }
    let (found, reason) = match of_models(&pipeline.models()) {
        Some(found) => (found, "as the model's"),
        None => (vec![surveyed(pipeline.captures(), interrupt)?], "the only one that a survey finds"),
    };
    let chosen = format!("gateway {}, {reason}", found.join(", "));
    pipeline.set(STAGE, KEY, found)?;
    Ok(Some(chosen))
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
fn surveyed(captures: Vec<PathBuf>, interrupt: &Interrupt) -> Result<String, Failure> {
    let missing = "`--gateway IP|CIDR` is missing: name the gateway of these captures";
    if captures.is_empty() || captures.iter().any(|capture| capture == Path::new("-")) {
        return Err(Failure::usage(anyhow!(
            "{missing}; `sizeleak survey CAPTURE` says which addresses look like gateways"
        )));
    }
    let run = SurveyRun { captures, recursive: true, gateways: Vec::new() };
    let report = run.survey(interrupt, &mut |_| {})?.report;
    let likely = report.addresses.iter().filter(|address| address.verdict == Verdict::Likely);
    let likely: Vec<String> = likely.map(|address| address.address.to_string()).collect();
    match likely.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            let seen = described(&report.addresses);
            Err(Failure::usage(anyhow!("{missing}, as a survey finds no address that clearly looks like one{seen}")))
        }
        several => {
            let seen = described(&report.addresses);
            Err(Failure::usage(anyhow!("{missing}, as {} look like one{seen}", several.join(", "))))
        }
    }
}

/// The addresses that look most like a gateway, with what speaks for them, as the end of a sentence.
fn described(addresses: &[SurveyedAddress]) -> String {
    let line = |address: &SurveyedAddress| {
        let reasons = address.reasons.iter().filter(|reason| reason.points > 0).map(|reason| reason.text.as_str());
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        format!("{} ({} of 100 points: {reasons})", address.address, address.score)
    };
    let seen: Vec<String> = addresses.iter().filter(|address| address.score > 0).take(SHOWN).map(line).collect();
    if seen.is_empty() { String::new() } else { format!("; most like one is {}", seen.join(", then ")) }
}
