//! Says what the sizes of commands give away about them, exactly, over all commands of an inventory.

mod command_group;
mod size_row;

pub use command_group::CommandGroup;
pub use size_row::SizeRow;
