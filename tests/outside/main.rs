//! The second tier: other programs, fuzzing, and what takes minutes.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod archive_scale;
mod bounded_memory;
mod cheapest_table;
mod cp_sat;
mod evaluation_tables;
mod fuzz_corpora;
mod nearest_neighbours;
mod public_captures;
mod python;
mod readme;
mod real_conversation;
mod real_protocols;
mod report_page;
mod spark;
