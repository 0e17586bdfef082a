//! Labelled commands as rows of numbers, for other programs.

use anyhow::anyhow;
use sizeleak_audit::leakage::Secret;
use sizeleak_learning::LabelledCommands;
use sizeleak_model::{Inventory, LabelledCommand};

use super::secrets::{KindSecrets, SeenBy, command_secrets, number_secrets};
use crate::command::failure::Failure;

/// A row for each command, in order of time: the number of its secret, its size and, if they are seen, its replies.
pub(super) fn csv(
    commands: &LabelledCommands,
    inventory: Option<&Inventory>,
    secret: Secret,
    seen: SeenBy,
) -> Result<String, Failure> {
    let all = &commands.commands;
    let kinds =
        inventory.filter(|_| secret == Secret::Kinds).and_then(|inventory| KindSecrets::new(commands, inventory));
    let (rows, secrets): (&[LabelledCommand], _) = match (secret, kinds.as_ref()) {
        (Secret::Command, _) => (all, command_secrets(all)),
        (Secret::Number, _) => (all, number_secrets(all)),
        (Secret::Kinds, Some(kinds)) => (&kinds.commands, kinds.secrets.clone()),
        (Secret::Kinds, None) => {
            return Err(Failure::usage(anyhow!(
                "there is nothing to export: kinds of device are known from an inventory (`--inventory`), of commands \
                 whose actions only one kind has"
            )));
        }
    };
    let row = |(secret, command): (&u32, &LabelledCommand)| {
        let output = seen.output(command);
        let replies = if seen == SeenBy::Sizes { String::new() } else { format!(",{}", output.replies) };
        format!("{secret},{}{replies}\n", output.size)
    };
    Ok(secrets.numbers().iter().zip(rows).map(row).collect())
}
