//! The sizes of the commands of a model, and how many commands share each.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow};
use sizeleak_inference::space::{CommandSpace, Premises};
use sizeleak_model::ModelSet;
use sizeleak_output::plot::CommandSizes;

use crate::command::failure::Failure;

/// Commands of so many actions have rows, as long as these are fewer than [`MAX_LISTED`].
const MAX_ACTIONS: u32 = 4;
const MAX_LISTED: f64 = 100_000.0;

/// The sizes of a section of a model file's text.
pub(super) fn of(text: &str, section: Option<usize>, name: &str) -> Result<CommandSizes, Failure> {
    let mut sections = ModelSet::from_toml(text).with_context(|| name.to_owned())?.into_sections();
    let count = sections.len();
    let number = match section {
        Some(number) if (1..=count).contains(&number) => number,
        None if count == 1 => 1,
        _ => {
            let words = "name one of its sections with";
            return Err(Failure::usage(anyhow!("{name}: {words} `--section`, from 1 to {count}")));
        }
    };
    let model = sections.swap_remove(number - 1);
    if model.actions.is_empty() {
        return Err(
            anyhow!("{name} knows no sizes of actions: `sizeleak learn … --labels labels.csv` finds them").into()
        );
    }
    let space = CommandSpace::new(&model, &Premises::default())?;
    let all: BTreeMap<u64, f64> = space.size_rows()?.into_iter().map(|row| (row.bytes, row.commands)).collect();
    let is_few = |actions: &u32| combinations(model.actions.len(), *actions) < MAX_LISTED;
    let numbers = (1..=space.most_actions().min(MAX_ACTIONS)).take_while(is_few);
    let row = |actions| {
        let mut sizes: Vec<u64> = space.commands_of(actions).into_iter().map(|(bytes, _)| space.size(bytes)).collect();
        sizes.dedup();
        sizes.into_iter().map(|size| (size, all.get(&size).copied().unwrap_or(1.0))).collect()
    };
    let alone = |at: usize| {
        let counts: Vec<u32> = (0..model.actions.len()).map(|other| u32::from(other == at)).collect();
        space.size(space.bytes_of(&counts))
    };
    let actions = model.actions.iter().enumerate().map(|(at, action)| (action.name.clone(), alone(at)));
    let commands: f64 = all.values().sum();
    Ok(CommandSizes {
        about: format!(
            "overhead {} bytes; {} commands have {} sizes, learned from {} labelled commands",
            model.overhead,
            if commands < 1e9 { format!("{commands:.0}") } else { format!("{commands:.1e}") },
            all.len(),
            model.learned.commands
        ),
        actions: actions.collect(),
        rows: numbers.map(row).collect(),
    })
}

/// How many ways there are to have at most so many of these actions.
fn combinations(kinds: usize, actions: u32) -> f64 {
    (1..=actions).map(|at| (kinds as f64 + f64::from(at)) / f64::from(at)).product()
}
