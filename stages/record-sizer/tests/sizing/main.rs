//! Segments in, records out: generated streams, and real TLS.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod messages;
mod simulated;
mod streams;
mod wire;
