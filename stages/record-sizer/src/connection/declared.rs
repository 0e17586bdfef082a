//! A connection with a framing of its own: declared for its ports, or shown by its bytes.

use super::{Connection, Stream};
use crate::framing::{Framing, LengthFramer};
use crate::per_direction::PerDirection;
use crate::record::RecordWalker;

impl Connection {
    /// Whether something of its protocol is known: it shows records, or a framing is declared for it.
    pub(crate) fn has_protocol(&self) -> bool {
        self.is_tls() || self.busy.as_ref().is_some_and(|busy| busy.declared.is_some())
    }

    /// The connection carries messages of this framing; without one, of Matter on these ports.
    pub(crate) fn declare(&mut self, framing: Option<&Framing>, matter_ports: &[u16]) {
        let (streams, _, busy) = self.parts();
        let is_start =
            |stream: &Stream| stream.position.saw_syn() && stream.walker.last_ns == RecordWalker::default().last_ns;
        let from_start =
            PerDirection { to_gateway: is_start(&streams.to_gateway), from_gateway: is_start(&streams.from_gateway) };
        busy.declared = Some(match framing {
            Some(framing) => LengthFramer::new(framing.clone(), from_start),
            None => LengthFramer::matter(matter_ports.to_vec(), from_start),
        });
        busy.messages = None;
        // It is no fault that it has none.
        busy.streams.to_gateway.is_reported_not_tls = true;
    }
}
