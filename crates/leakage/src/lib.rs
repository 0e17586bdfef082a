//! Says what the sizes of commands give away about them, exactly, over all commands of an inventory.

mod audit;
mod channel;
mod collisions;
mod command_group;
mod command_space;
mod device_ways;
mod error;
mod joint;
mod measures;
mod model_observer;
mod observation;
mod other_inventory;
mod premises;
mod repeated;
mod reply_noise;
mod secret_sums;
mod size_noise;
mod size_row;
mod spread;
mod weights;

pub use audit::{Audit, Learned, Repeated, share_in_words};
pub use channel::{Channel, ChannelRow};
pub use collisions::{Collision, NumberRow, number_rows};
pub use command_group::CommandGroup;
pub use command_space::{CommandSpace, MAX_LISTED};
pub use error::LeakageError;
pub use joint::{Joint, Secret, command_name};
pub use measures::{Certainty, Measures, SetSizes, TRIES, Tries};
pub use model_observer::{ModelObserver, NamedSecrets};
pub use observation::{Observation, Output};
pub use other_inventory::with_inventory;
pub use premises::{Premises, PriorKind};
pub use reply_noise::Observer;
pub use secret_sums::{KEPT, SecretSums};
pub use size_noise::EpsilonKnowledge;
pub use size_row::SizeRow;
