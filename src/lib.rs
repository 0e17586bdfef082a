//! Shows what the sizes of encrypted messages give away about the people behind an `IoT` gateway.
//!
//! This library is what an embedder or a bench needs of the program: [`registry`] knows the seven stages, [`pipeline`]
//! reads `pipeline.toml` and runs it in threads or processes. The stages themselves are crates of their own.

pub mod command;

pub use sizeleak_output as output;
pub use sizeleak_pipeline as pipeline;
pub use sizeleak_pipeline::{cache, recording, registry};
