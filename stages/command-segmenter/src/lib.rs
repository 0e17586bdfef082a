//! Commands to a gateway, out of the TLS records around them.
//!
//! Not every record from the service is a command: keep-alives are tiny, acknowledgements answer what the gateway has
//! just sent, handshakes and tickets belong to TLS. What is left is told apart by one of several algorithms
//! ([`Algorithm`]); what the gateway sends next is counted as replies.

mod adaptive;
mod by_size;
mod delay;
mod endpoints;
mod flow_history;
mod learned;
mod likelihood;
mod message;
mod noise_model;
mod open_commands;
mod options;
mod periodic;
mod record_class;
mod rules;
mod segmenter;
mod service_classifier;
mod study;
#[cfg(test)]
mod testing;
mod traffic_profile;
mod training;
mod training_counts;

pub use options::{Algorithm, Options};
pub use segmenter::{CommandSegmenter, SegmenterInput};
pub use training::LabelledTraffic;
