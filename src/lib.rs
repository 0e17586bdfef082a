//! Shows what the sizes of encrypted messages give away about the people behind an `IoT` gateway.
//!
//! This library is what the `sizeleak` program is made of. The stages themselves are crates of their own.

pub mod command;
