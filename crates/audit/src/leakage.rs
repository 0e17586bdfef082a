//! Says what the sizes of commands give away about them, exactly, over all commands of an inventory.

mod audit;
mod collisions;
mod joint;
mod model_observer;
mod other_inventory;

pub use audit::{Audit, Learned, Repeated, share_in_words};
pub use collisions::{Collision, NumberRow, number_rows};
pub use joint::{Joint, Secret, command_name};
pub use model_observer::{ModelObserver, NamedSecrets};
pub use other_inventory::with_inventory;
