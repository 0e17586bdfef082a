//! How often an observer who knows a model is right about labelled commands, beside what the model says.

use anyhow::Result;
use serde::Serialize;
use sizeleak_audit::leakage::{ModelObserver, NamedSecrets};
use sizeleak_evaluation::measured_leak::MeasuredShare;
use sizeleak_inference::space::{CommandSpace, Premises, SpaceError};
use sizeleak_learning::LabelledCommands;
use sizeleak_model::{LabelledCommand, LearnedPadding, Model};
use sizeleak_pipeline::Pipeline;

use crate::command::labelled_captures::LabelledCaptures;

#[derive(Debug, Default, Serialize)]
pub(crate) struct ModelCheck {
    pub(super) learned_from: Vec<String>,
    /// How many labelled commands the model knows: the figures are of these.
    pub(super) commands: u64,
    /// How many it does not know, because it lacks an action or a device.
    pub(super) unknown_commands: u64,
    /// How many are under a cipher that its sizes on the wire do not hold for.
    pub(super) other_ciphers: u64,
    /// How many that it knows have a size that no command of the model has.
    pub(super) unknown_sizes: u64,
    /// `None` if the figures cannot be computed.
    pub(super) figures: Option<ModelFigures>,
    pub(super) fault: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ModelFigures {
    pub(super) command: ModelFigure,
    pub(super) number: ModelFigure,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ModelFigure {
    pub(super) named: MeasuredShare,
    /// What the model says of these commands, each as frequent as it is among the labels.
    pub(super) expected: f64,
    pub(super) agrees: bool,
    /// What the model says of all commands of the home, as probable as its prior says: V of the audit without captures.
    pub(super) over_all_commands: f64,
}

impl ModelFigure {
    fn new(right: f64, expected: f64, commands: u64, over_all_commands: f64) -> Self {
        // Where the guess is one of several, so is being right.
        let named = MeasuredShare::new(right.round() as u64, commands);
        let expected = expected / commands.max(1) as f64;
        // Up to rounding of sums.
        let agrees = named.interval.low - 1e-9 <= expected && expected <= named.interval.high + 1e-9;
        Self { named, expected, agrees, over_all_commands }
    }
}

impl ModelCheck {
    pub(crate) fn of(
        captures: &LabelledCaptures,
        pipeline: &Pipeline,
        model: &Model,
        premises: &Premises,
        commands: &LabelledCommands,
    ) -> Result<Self> {
        let learned_from = captures.learned_from(std::slice::from_ref(model), pipeline)?;
        let mut check = Self { learned_from, ..Self::default() };
        match check.figures(model, premises, commands) {
            Ok(figures) => check.figures = Some(figures),
            Err(fault) => check.fault = Some(fault),
        }
        Ok(check)
    }

    fn figures(
        &mut self,
        model: &Model,
        premises: &Premises,
        commands: &LabelledCommands,
    ) -> Result<ModelFigures, String> {
        if let Some(why) = model.learned.unfit_for_figures() {
            return Err(why);
        }
        if matches!(model.learned.padding, Some(LearnedPadding::Modulo(_))) {
            return Err("where the multiples begin that commands are padded to is not known".to_owned());
        }
        let fault = |error: SpaceError| error.to_string();
        let space = CommandSpace::new(model, premises).map_err(fault)?;
        let mut observer = ModelObserver::new(&space, model).map_err(fault)?;
        let (mut right, mut expected) = (NamedSecrets::default(), NamedSecrets::default());
        for (command, size) in commands.commands.iter().zip(commands.sizes_in(&model.learned.basis)) {
            let Some(size) = size else {
                self.other_ciphers += 1;
                continue;
            };
            let counts = counts_in(model, &commands.actions, command);
            let Some(counts) = counts.filter(|counts| observer.knows_command(counts)) else {
                self.unknown_commands += 1;
                continue;
            };
            self.commands += 1;
            self.unknown_sizes += u64::from(!observer.knows_size(size));
            add(&mut right, observer.right(&counts, size));
            add(&mut expected, observer.expected(&counts));
        }
        if self.commands == 0 {
            return Err("it knows none of the labelled commands".to_owned());
        }
        let named = observer.named();
        Ok(ModelFigures {
            command: ModelFigure::new(right.command, expected.command, self.commands, named.command),
            number: ModelFigure::new(right.number, expected.number, self.commands, named.number),
        })
    }
}

fn add(sum: &mut NamedSecrets, named: NamedSecrets) {
    sum.command += named.command;
    sum.number += named.number;
}

fn counts_in(model: &Model, actions: &[String], command: &LabelledCommand) -> Option<Vec<u32>> {
    let mut counts = vec![0_u32; model.actions.len()];
    for (action, count) in actions.iter().zip(&command.counts).filter(|(_, count)| **count > 0) {
        let at = model.actions.iter().position(|known| known.name == *action)?;
        let known = counts.get_mut(at)?;
        *known = known.saturating_add(*count);
    }
    Some(counts)
}
