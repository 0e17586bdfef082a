//! The secrets of labelled commands, and what an observer sees of them.

use std::collections::BTreeSet;

use sizeleak_evaluation::measured_leak::{SecretNumbers, SeenOutput};
use sizeleak_learning::LabelledCommands;
use sizeleak_model::{Inventory, LabelledCommand};

/// What an observer sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeenBy {
    /// The size.
    Sizes,
    /// Also the number of replies.
    ReplyCount,
    /// Also the bytes of replies.
    ReplyBytes,
}

impl SeenBy {
    /// What is seen of a command; under a block cipher, the greatest size that it may have.
    pub(super) fn output(self, command: &LabelledCommand) -> SeenOutput {
        let unsigned = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
        let replies = match self {
            Self::Sizes => 0,
            Self::ReplyCount => u64::from(command.replies),
            Self::ReplyBytes => unsigned(command.reply_bytes),
        };
        SeenOutput { size: unsigned(command.sizes[1]), replies }
    }
}

/// The command of each label: which actions, and how often each.
pub(super) fn command_secrets(commands: &[LabelledCommand]) -> SecretNumbers {
    SecretNumbers::new(&commands.iter().map(|command| &command.counts).collect::<Vec<_>>())
}

/// How many actions each label has.
pub(super) fn number_secrets(commands: &[LabelledCommand]) -> SecretNumbers {
    let number = |counts: &Vec<u32>| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    SecretNumbers::new(&commands.iter().map(|command| number(&command.counts)).collect::<Vec<_>>())
}

/// The commands whose kinds of device are known, and these as a secret.
#[derive(Debug)]
pub(super) struct KindSecrets {
    pub(super) commands: Vec<LabelledCommand>,
    pub(super) secrets: SecretNumbers,
}

impl KindSecrets {
    /// A command's kinds are known if each of its actions is one of a single kind; `None` if there is no such command.
    pub(super) fn new(commands: &LabelledCommands, inventory: &Inventory) -> Option<Self> {
        let only_kind = |action: &String| -> Option<usize> {
            let mut kinds = (0..).zip(&inventory.devices).filter(|(_, kind)| kind.actions.contains(action));
            let first = kinds.next();
            first.filter(|_| kinds.next().is_none()).map(|(kind, _)| kind)
        };
        let of_actions: Vec<Option<usize>> = commands.actions.iter().map(only_kind).collect();
        let kinds_of = |counts: &[u32]| -> Option<BTreeSet<usize>> {
            counts.iter().zip(&of_actions).filter(|(count, _)| **count > 0).map(|(_, kind)| *kind).collect()
        };
        let known = commands.commands.iter().filter_map(|command| Some((command.clone(), kinds_of(&command.counts)?)));
        let (commands, kinds): (Vec<_>, Vec<_>) = known.filter(|(_, kinds)| !kinds.is_empty()).unzip();
        (!commands.is_empty()).then(|| Self { commands, secrets: SecretNumbers::new(&kinds) })
    }
}
