//! An action of a device and what it adds to a command's size.

use serde::{Deserialize, Serialize};

/// Something a device can be told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its name, as in labels and inventory.
    pub name: String,
    /// |aᵢ|: what one of it adds to a command, in bytes.
    pub size: i64,
}
