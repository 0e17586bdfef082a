//! Commands to a gateway, out of the TLS records around them.
//!
//! Not every record from the service is a command: keep-alives are tiny, acknowledgements answer what the gateway has
//! just sent, handshakes and tickets belong to TLS. What is left is told apart by one of several algorithms
//! ([`Algorithm`]); what the gateway sends next is counted as replies.

mod adaptive;
mod beat;
mod by_size;
mod conversation;
mod count;
mod delay;
mod exchange;
mod habit;
mod judge;
mod knowledge;
mod learned;
mod message;
mod open;
mod options;
mod pair;
mod segmenter;
mod study;
mod teaching;
#[cfg(test)]
mod testing;
mod verdict;
mod weigh;

pub use options::{Algorithm, Options};
pub use segmenter::{CommandSegmenter, Input};
pub use teaching::LabelledTraffic;
