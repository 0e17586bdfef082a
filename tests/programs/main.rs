//! The programs as people run them: command lines, files, messages and reports.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod archive;
mod archive_units;
mod archive_watch;
mod audit;
mod burst_segmenter;
mod capture_folders;
mod cases;
mod check_stage;
mod checkpoints;
mod clocks;
mod comparing;
mod embedding;
mod escaping;
mod evaluation;
mod example;
mod exports;
mod faults;
mod help;
mod help_examples;
mod interfaces;
mod label_forms;
mod latency;
mod many_files;
mod measure;
mod messages;
mod metrics;
mod modes;
mod name_resolution;
mod one_processor;
mod own_segmenters;
mod pad;
mod parquet;
mod pipeline_schema;
mod processes;
mod profiles;
mod record;
mod record_lab;
mod replay;
mod report;
mod same_bytes;
mod sandbox;
mod strip;
mod survey;
mod tunnels;
