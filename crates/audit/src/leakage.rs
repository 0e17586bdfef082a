//! Says what the sizes of commands give away about them, exactly, over all commands of an inventory.

mod audit;
mod collisions;
mod joint;
mod model_observer;

use sizeleak_model::{Inventory, InventoryError, Model};

pub use audit::{Audit, Learned, Repeated, share_in_words};
pub use collisions::{Collision, NumberRow, number_rows};
pub use joint::{Joint, Secret, command_name};
pub use model_observer::{ModelObserver, NamedSecrets};

/// The model with another inventory, without the actions that none of its devices has, and the names of these. What was
/// learned of habits stays: the shares of the actions that are left relative to each other.
pub fn with_inventory(mut model: Model, inventory: Inventory) -> Result<(Model, Vec<String>), InventoryError> {
    inventory.check()?;
    let names = inventory.action_names();
    let is_kept: Vec<bool> = model.actions.iter().map(|action| names.contains(&action.name.as_str())).collect();
    let gone = model.actions.iter().zip(&is_kept).filter(|(_, kept)| !**kept).map(|(action, _)| action.name.clone());
    let gone: Vec<String> = gone.collect();
    keep(&mut model.actions, &is_kept);
    if let Some(prior) = &mut model.prior {
        keep(&mut prior.shares, &is_kept);
        let occurs = |counts: &[u32]| counts.iter().zip(&is_kept).all(|(count, kept)| *kept || *count == 0);
        prior.recurring.retain(|command| occurs(&command.counts));
        prior.recurring.iter_mut().for_each(|command| keep(&mut command.counts, &is_kept));
    }
    if let Some(replies) = &mut model.single_replies {
        keep(&mut replies.per_action, &is_kept);
    }
    model.inventory = Some(inventory);
    Ok((model, gone))
}

fn keep<T>(values: &mut Vec<T>, is_kept: &[bool]) {
    let mut kept = is_kept.iter().copied();
    values.retain(|_| kept.next().unwrap_or(true));
}
