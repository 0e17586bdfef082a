//! What a model is asked of: its section, the devices, and how probable commands are before their size is seen.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde::Serialize;
use sizeleak_audit::leakage::with_inventory;
use sizeleak_audit::tunnel::{Tunnel, TunnelKind};
use sizeleak_inference::space::{Premises, PriorName, SpaceError};
use sizeleak_model::{Inventory, Model, ModelSet};
use sizeleak_pipeline::Pipeline;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::counted;

use super::failure::{parsed, usage};
use super::labels::LabelledCaptures;
use super::shared_options::share;

#[derive(Debug, Args)]
pub(super) struct AuditedModel {
    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Which section of a model of several services, from 1
    #[arg(long, value_name = "NUMBER")]
    section: Option<usize>,

    /// The devices, if they are others than those of the model
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// How probable commands are before their size is seen: learned, recurring, devices or flat [default: recurring]
    #[arg(long, value_enum, hide_possible_values = true, default_value_t, hide_default_value = true)]
    prior: PriorName,

    /// How likely n + 1 actions are, compared with n [default: as learned]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    decay: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct PriorReport {
    name: PriorName,
    decay: Option<f64>,
    pub(super) sentence: String,
}

/// The section of this number, from 1, or the only one.
pub(super) fn section(model: ModelSet, number: Option<usize>) -> Result<Model> {
    let sections = model.into_sections();
    let count = sections.len();
    if number.is_none() && count > 1 {
        let fault = "the model is about several services: name one of its sections with";
        return Err(usage!("{fault} `--section`, from 1 to {count}"));
    }
    let number = number.unwrap_or(1);
    let section = number.checked_sub(1).and_then(|at| sections.into_iter().nth(at));
    section.ok_or_else(|| {
        usage!("the model has no section {number}, only {count}: name one with `--section`, from 1 to {count}")
    })
}

pub(super) fn actions(model: &Model) -> Vec<&str> {
    model.actions.iter().map(|action| action.name.as_str()).collect()
}

impl AuditedModel {
    pub(super) fn files(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let named = [("the model", &self.model), ("the inventory", &self.inventory)];
        named.into_iter().filter_map(|(role, path)| Some((role, path.clone()?)))
    }

    pub(super) fn path(&self) -> Option<&PathBuf> {
        self.model.as_ref()
    }

    pub(super) fn pipeline(&self, captures: &LabelledCaptures) -> Result<Pipeline> {
        captures.pipeline(captures.traffic.pipeline()?, self.model.as_slice(), &[])
    }

    pub(super) fn premises(&self) -> Premises {
        Premises { prior: self.prior, decay: self.decay }
    }

    pub(super) fn prior(&self, model: &Model) -> PriorReport {
        let number = self.decay.map_or_else(
            || "the number of actions is as learned".to_owned(),
            |decay| format!("each number of actions is {decay} times as likely as one less"),
        );
        // Without labels, they are commands that the sizes explain.
        let learned = format!("learned from {}", counted(model.learned.commands, "command", "commands"));
        let recurring = if self.prior == PriorName::Recurring { model.recurring_in_words() } else { None };
        let recurring = recurring.map_or_else(String::new, |commands| format!("; {commands}"));
        let sentence = match self.prior {
            PriorName::Learned | PriorName::Recurring if self.decay.is_none() => format!("{learned}{recurring}"),
            PriorName::Learned | PriorName::Recurring => {
                format!("how often each action occurs is {learned}; {number}{recurring}")
            }
            PriorName::Devices => format!("each device is as likely, and each of its actions; {number}"),
            PriorName::Flat => "each command is as likely".to_owned(),
        };
        PriorReport { name: self.prior, decay: self.decay, sentence }
    }

    pub(super) fn inventory(&self) -> Result<Option<Inventory>> {
        self.inventory.as_ref().map(|path| parsed(path, Inventory::from_toml)).transpose()
    }

    /// The model's section, if its sizes are known well enough for a figure.
    pub(super) fn fit_model(&self) -> Result<Model> {
        let model = self.model()?;
        let unfit = model.learned.unfit_for_figures().map(|why| anyhow!(why));
        let fault = unfit
            .or_else(|| model.actions.is_empty().then(|| SpaceError::without_sizes(model.inventory.as_ref()).into()));
        fault.map_or(Ok(model), |fault| Err(fault.context(self.named())))
    }

    /// The model's file, as errors name it.
    pub(super) fn named(&self) -> String {
        self.path().map_or_else(String::new, |path| path.display().to_string())
    }

    pub(super) fn model(&self) -> Result<Model> {
        let Some(model) = &self.model else {
            return Err(usage!("the model is missing: name it with `--model FILE`"));
        };
        let model = section(ModelSet::read(&[model])?, self.section)?;
        if model.kinds.is_some() && !model.actions.is_empty() {
            say("note", "commands that the model knows only as kinds are left out: the audit is about sums of actions");
        }
        // One that is not fit for figures says its warnings instead of them.
        if model.learned.unfit_for_figures().is_none() {
            model.learned.warnings.iter().for_each(|warning| {
                say("sizeleak", &format!("the model was learned with a warning, and so are these figures: {warning}"));
            });
        }
        let (Some(path), Some(inventory)) = (&self.inventory, self.inventory()?) else { return Ok(model) };
        let name = || path.display().to_string();
        let has_sizes = !model.actions.is_empty();
        let (model, gone) = with_inventory(model, inventory).with_context(name)?;
        if !has_sizes {
            // It knows commands as kinds alone, whatever the devices are; who needs sizes of actions says so.
            return Ok(model);
        }
        if model.actions.is_empty() {
            let path = path.display();
            let fault = "no device has an action that the model has sizes of: name actions as the model does";
            return Err(usage!("{path}: {fault}"));
        }
        let unknown = model.inventory.as_ref().map(|inventory| inventory.unlearned(&model.actions).join(", "));
        let notes = [
            ("no device of the inventory has these actions of the model, which are left out", gone.join(", ")),
            ("the model does not know these actions of the inventory, which are left out", unknown.unwrap_or_default()),
        ];
        for (note, actions) in notes.iter().filter(|(_, actions)| !actions.is_empty()) {
            say("note", &format!("{note}: {actions}"));
        }
        Ok(model)
    }
}

#[derive(Debug, Args)]
pub(super) struct ObserverOption {
    /// What who sees the packets of a tunnel learns: wireguard, esp-gcm, esp-cbc, or a policy by which it pads packets.
    /// Such as multiple:128. The observer counts the packets that are sent at once, and adds up their bytes.
    #[arg(long, value_name = "NAME")]
    tunnel: Option<TunnelKind>,
}

impl ObserverOption {
    pub(super) fn tunnel(&self, model: &Model) -> Option<Tunnel> {
        self.tunnel.clone().map(|kind| Tunnel::new(kind, model))
    }
}
