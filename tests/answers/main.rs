//! How right the answers are: of simulated homes, of real gateways, and under attack.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod accuracy;
mod bystanders;
mod calibration;
mod changing_gateway;
mod countermeasures;
mod evasion;
mod few_labels;
mod found_with;
mod habits;
mod headers_only;
mod impaired_captures;
mod incomplete_labels;
mod loss;
mod misfit;
mod odd_sizes;
mod overlapping;
mod packet_times;
mod padding;
mod parameters;
mod plain_tcp;
mod polls_without_a_model;
mod real_gateways;
mod recording;
mod reports;
mod segmenting;
mod transfer;
mod unlabelled;
