//! Says what the sizes of commands give away about them, exactly, over all commands of an inventory.

mod command_group;
mod command_space;
mod command_sums;
mod device_ways;
mod error;
mod other_inventory;
mod premises;
mod size_row;
mod spread;
mod weights;

pub use command_group::CommandGroup;
pub use command_space::{CommandSpace, MAX_LISTED};
pub use error::LeakageError;
pub use other_inventory::with_inventory;
pub use premises::{Premises, PriorKind};
pub use size_row::SizeRow;
