//! The stage `record-sizer`: turns the TCP segments of a gateway into TLS records with the sizes of their plaintexts.
//!
//! A segment goes through `sizer` to its `connection`, is put in order by `reassembly`, and is cut into records
//! by `framer`, which reads their headers (`record`) and finds lost boundaries (`resync`). `handshake` reads
//! the two hellos. `reporter` asks the `session` what each record is, and emits it. Bodies are skipped unread.
//! Datagrams go to the `datagram_flow` of their protocol, and TCP without TLS to the framer of lengths, if a `framing`
//! is declared for it or shows itself.
//!
//! [`ReadBytes`] say which bytes of payload all that depends on, so that others can be removed from a capture.
//!
//! Nothing here does I/O or reads clocks, [`Options`] bound all state, and any input is accepted.
//!
//! ```
//! use sizeleak_frame::{Direction, Frame, Segment, Segments};
//! use sizeleak_record_sizer::{Options, RecordSizer};
//! use sizeleak_platform::runtime::Stage;
//!
//! // A record of application data (type 23, TLS 1.2) with a body of 40 bytes.
//! let payload = [&[23, 3, 3, 0, 40][..], &[0; 40]].concat();
//! let (direction, flags, payload) = (Direction::ToGateway, Segment::ACK, &payload[..]);
//! let mut segments = Segments::new();
//! segments.push(Segment { time_ns: 1, flow: 7, direction, sequence: 0, flags, length: 45, payload, acknowledgement: None });
//!
//! let (mut sizer, mut frames) = (RecordSizer::new(&Options::default())?, Vec::new());
//! sizer.process(segments.into(), &mut frames)?;
//! sizer.finish(&mut frames)?;
//! let [Frame::Record(record)] = &frames[..] else { panic!("{frames:?}") };
//! assert_eq!(record.length, 40);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::indexing_slicing)]

mod chunk;
mod connection;
mod connection_id;
mod datagram_flow;
mod dtls;
mod findings;
mod flow_table;
mod framer;
mod framing;
mod handshake;
mod matter;
mod message;
mod messages;
mod numbered;
mod options;
mod plaintext;
mod quic;
mod reassembly;
mod record;
mod reporter;
mod resync;
mod rivals;
mod session;
mod sizer;
mod tls13;
mod tunnels;
mod unseen_bytes;

pub use findings::ReadBytes;
pub use framing::{Framing, Prefix};
pub use options::Options;
pub use plaintext::record_overhead;
pub use sizer::{RecordSizer, SizerInput};
