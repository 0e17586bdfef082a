//! What the fuzzer calls, and the test suite with it: each target takes any bytes and checks what must hold of them.
//!
//! A target never fails on bad input, only on what bad input must not do: panic, hang, take memory without bound, or
//! give what cannot be.
#![allow(clippy::missing_panics_doc, reason = "a panic is what a target is for")]

mod capture;
mod frames;
mod input;
mod packets;
mod records;

pub use capture::capture_reader;
pub use frames::frame_decoder;
pub use packets::{packet_parser, packets};
pub use records::{flows, record_finder, segments};
