//! What tests share with each other and with measurements: captures, homes and streams to test with, the programs of the
//! workspace and of others, and what fuzzers call.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::new_without_default,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

pub mod alignment;
pub mod apart;
pub mod archive_home;
pub mod attack;
pub mod cases;
pub mod chain;
pub mod committed_files;
pub mod conversation;
pub mod damage;
pub mod found;
pub mod fuzz_targets;
pub mod home;
pub mod injected;
pub mod joint;
pub mod processors;
pub mod programs;
pub mod public;
pub mod rotation;
pub mod segmenters;
pub mod size_table;
pub mod streams;
pub mod table;
pub mod timeless;
pub mod tool;
pub mod traffic;
pub mod transcript;
pub mod tshark;
