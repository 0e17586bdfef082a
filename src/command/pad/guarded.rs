//! What padding hides from a home's own detector.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use sizeleak_audit::guard::{Guard, GuardedHome, each_home};
use sizeleak_audit::padding::PaddingPolicy;
use sizeleak_frame::Frame;
use sizeleak_habits::{Budget, Profile, SeenFlows, Sighting};
use sizeleak_model::{LearnedPadding, Model};
use sizeleak_pipeline::{InputSource, Pipeline, PipelineInput};
use sizeleak_platform::runtime::processors;
use sizeleak_platform::telemetry::log::say;
use sizeleak_simulator::scenario::AttackKind;
use sizeleak_simulator::{Scenario, SimulatedCapture};

use crate::command::failure::{parsed, usage};

/// How long a detector learns before the first attack: the budget of a week is kept by then.
const LEARNED_DAYS: u32 = 42;

/// Days that remain for attacks, at least: those of all kinds apart, and some to find the last one.
const ATTACKED_DAYS: u32 = 18;

const FIRST_SEED: u64 = 1;

#[derive(Debug, Args)]
pub(super) struct GuardOptions {
    /// Also measure what the home's own detector still finds, in homes that live by this scenario. With `[habits]` of
    /// at least 60 days, and the actions of the model.
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["table", "countermeasures", "batch", "dummies", "delay", "replies"])]
    pub(super) detect: Option<PathBuf>,

    /// How many false alarms the detector may have [default: 1/week]
    #[arg(long, value_name = "ALARMS/TIME", default_value_t = Budget::WEEKLY, hide_default_value = true,
        requires = "detect")]
    alarms: Budget,

    /// In how many homes it is measured [default: 10]
    #[arg(long, value_name = "NUMBER", default_value_t = 10, hide_default_value = true, requires = "detect", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    homes: u64,
}

impl GuardOptions {
    pub(super) fn homes<'a>(&'a self, model: &'a Model) -> Result<Option<GuardedHomes<'a>>> {
        let Some(path) = &self.detect else { return Ok(None) };
        let scenario = parsed(path, Scenario::from_toml)?;
        let days = scenario.habits.days;
        if days < LEARNED_DAYS + ATTACKED_DAYS {
            let least = LEARNED_DAYS + ATTACKED_DAYS;
            return Err(usage!(
                "{}: its home lives for {days} days, and {least} are needed: write `days = {least}` below `[habits]`",
                path.display()
            ));
        }
        let names = scenario.action_names();
        if let Some(unknown) = names.iter().find(|name| !model.actions.iter().any(|action| action.name == **name)) {
            return Err(usage!(
                "{}: its home has the action `{unknown}`, which the model does not know: take a scenario of the gateway \
                 that the model was learned from",
                path.display()
            ));
        }
        Ok(Some(GuardedHomes { options: self, model, scenario }))
    }
}

pub(super) struct GuardedHomes<'a> {
    options: &'a GuardOptions,
    model: &'a Model,
    scenario: Scenario,
}

impl GuardedHomes<'_> {
    /// The share of attacks that is found where commands are padded by a policy: the mean over their kinds.
    pub(super) fn found(&self, policy: &PaddingPolicy) -> Result<f64> {
        let mut scenario = self.scenario.clone();
        scenario.padding.policy = policy.clone();
        let mut model = self.model.clone();
        model.learned.padding = (*policy != PaddingPolicy::None).then(|| LearnedPadding::Policy(policy.clone()));
        say("note", &format!("detection with {}{policy}, in {} homes", policy.article(), self.options.homes));
        let watch = |home| self.watch(&scenario, &model, FIRST_SEED + home);
        let watched = each_home(self.options.homes, processors(), watch)?;
        let attacks = || watched.iter().flat_map(|home| &home.attacks);
        let share = |kind: AttackKind| {
            let met = || attacks().filter(move |attack| attack.kind == kind);
            let found = met().filter(|attack| attack.alarm.is_some()).count();
            found as f64 / met().count().max(1) as f64
        };
        let kinds = visible_kinds();
        Ok(kinds.iter().map(|kind| share(*kind)).sum::<f64>() / kinds.len() as f64)
    }

    fn watch(&self, scenario: &Scenario, model: &Model, seed: u64) -> Result<GuardedHome> {
        let folder = tempfile::Builder::new().prefix("sizeleak-").tempdir()?;
        let model_file = folder.path().join("model.toml");
        fs::write(&model_file, model.to_toml())?;
        let mut pipeline = Pipeline::standard();
        pipeline.use_models(&[model_file])?;
        let commands = folder.path().join("commands.frames");
        let see = |test: &SimulatedCapture| -> Result<Vec<Sighting>> {
            fs::write(&commands, &test.bytes)?;
            sightings(&pipeline, commands.clone())
        };
        let home = Profile::new(&scenario.habits.time_zone)?;
        let guard = Guard { scenario, days: LEARNED_DAYS, attacks: &visible_kinds() };
        guard.watch(seed, home.detector("", self.options.alarms), see)
    }
}

/// Of the replay of a usual command at its usual time, habits say nothing.
fn visible_kinds() -> Vec<AttackKind> {
    AttackKind::ALL.into_iter().filter(|kind| *kind != AttackKind::Replay).collect()
}

fn sightings(pipeline: &Pipeline, commands: PathBuf) -> Result<Vec<Sighting>> {
    let mut flows = SeenFlows::new(usize::MAX);
    let mut sightings = Vec::new();
    let input = PipelineInput::new(InputSource::Streams(vec![commands]));
    input.observe(pipeline, &mut |_| {}, |frame| match frame {
        Frame::Notice(notice) => flows.note(&notice),
        Frame::Identification(answer) => sightings.push(flows.sighting(&answer).1),
        _ => {}
    })?;
    Ok(sightings)
}
