//! The functions that the fuzzer and the test suite call: each target takes any bytes and checks what must hold for
//! them.
//!
//! A target never fails because input is bad, only because of what bad input must not cause: a panic, a hang, unbounded
//! memory, or impossible output.

mod capture;
mod frames;
mod http;
mod input;
mod latency;
mod model;
mod packets;
mod records;
mod tables;

pub use capture::capture_reader;
pub use frames::frame_decoder;
pub use http::http_request;
pub use latency::latency_histogram;
pub use model::model_file;
pub use packets::{packet_parser, packets};
pub use records::{flows, record_finder, segments};
pub use tables::{inventory_file, label_file, pipeline_file};
