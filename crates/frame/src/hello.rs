//! `hello`: who writes a stream, in which version of the contract.

use serde::{Deserialize, Serialize};

/// The version of the frame contract. It alone decides whether two stages are compatible.
pub const SCHEMA: u32 = 1;

/// The first frame of every stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The contract's version, [`SCHEMA`].
    pub schema: u32,
    /// The stage that writes this stream.
    pub stage: String,
    /// The version of the program that writes it; for people only.
    pub version: String,
    /// The stages before it, in order.
    pub upstream: Vec<String>,
}

impl Hello {
    /// What a stream of this stage begins with, as this version writes it and where no stage comes before.
    pub fn of(stage: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { schema: SCHEMA, stage: stage.to_owned(), version, upstream: Vec::new() }
    }
}
