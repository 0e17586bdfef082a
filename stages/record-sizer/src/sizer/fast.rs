//! The fast path: application data that comes in order, in a connection at rest.

use sizeleak_frame::{BatchIter, ContentType, Segment, SegmentRow};
use sizeleak_platform::runtime::{Closed, Emit};

use super::RecordSizer;
use crate::chunk::Chunk;
use crate::record::{Header, WalkerState};
use crate::session::RecordDetails;

impl RecordSizer {
    /// Reports the records of application data in the next segments, as long as these come in order, to connections at
    /// rest, and no other work is due. Returns the rest of a segment that ends otherwise, which is in order again.
    ///
    /// Never inlined, so that the loop keeps its variables in registers.
    #[inline(never)]
    pub(super) fn take_data<'a>(
        &mut self,
        segments: &mut BatchIter<'a, SegmentRow>,
        out: &mut dyn Emit,
    ) -> Result<Option<Segment<'a>>, Closed> {
        if self.findings.read.is_some() {
            return Ok(None);
        }
        let idle_until_ns = self.idle_until_ns();
        while let Some(segment) = segments.peek() {
            let Segment { time_ns, flow, direction, flags, .. } = segment;
            if time_ns >= idle_until_ns || flags == 0 || flags & (Segment::SYN | Segment::FIN | Segment::RST) != 0 {
                break;
            }
            if !self.clock.follows(flow, time_ns) {
                break;
            }
            let mut rest = Chunk::of(&segment);
            let length = rest.length();
            if segment.length > 0 {
                let Some(connection) = self.connections.find(flow) else { break };
                let Some((stream, keys, payload)) = connection.at_rest(direction) else { break };
                let walker = &mut stream.walker;
                if stream.position.next != segment.sequence || walker.version().is_none() || rest.may_be_padding {
                    break;
                }
                walker.last_ns = walker.last_ns.max(time_ns);
                loop {
                    let (header, left) = match walker.state {
                        WalkerState::Body { header, left } => (header, left),
                        WalkerState::Header { .. } => {
                            let Some((bytes, body)) = rest.payload.split_first_chunk() else { break };
                            let Some(header) = Header::parse(*bytes) else { break };
                            if header.content_type != ContentType::ApplicationData {
                                break;
                            }
                            (walker.start_ns, rest.payload) = (walker.last_ns, body);
                            (header, header.length)
                        }
                    };
                    let taken = if let Some(behind) = rest.payload.get(left.into()..) {
                        rest.payload = behind;
                        left
                    } else {
                        rest.advance(left.into()).1 as u16
                    };
                    if taken < left {
                        walker.state = WalkerState::Body { header, left: left - taken };
                        break;
                    }
                    let record = walker.end_record(header);
                    stream.follows_data = true;
                    let details = RecordDetails { plaintext: keys.plaintext(header, direction), handshake: false };
                    self.reporter.record(flow, direction, record, details, out)?;
                }
                stream.position.next = segment.sequence.wrapping_add((length - rest.length()) as u32);
                stream.position.remember(&segment);
                payload.sent += length - rest.length();
            } else if self.held_flows.bytes > 0 || self.says_missing(&segment) {
                break;
            }
            segments.advance();
            self.now_ns = time_ns;
            self.reporter.counters.segment(&segment);
            if !rest.is_empty() {
                // Behind other bytes of its segment, it is no padding, as a push says.
                let flags = if length > rest.length() { segment.flags | Segment::PSH } else { segment.flags };
                let sequence = segment.sequence.wrapping_add((length - rest.length()) as u32);
                let length = rest.length() as u32;
                return Ok(Some(Segment { sequence, length, flags, payload: rest.payload, ..segment }));
            }
        }
        Ok(None)
    }

    /// Before this time [`segment`](Self::segment) has nothing to do for TCP but to count, unless flows are added or
    /// held.
    fn idle_until_ns(&self) -> i64 {
        let sweeps = [
            self.connections.next_sweep_ns(self.limits.idle_timeout_ns),
            self.syns.next_sweep_ns(self.limits.idle_timeout_ns),
        ];
        sweeps.into_iter().fold(self.held_flows.first_deadline(), i64::min)
    }
}
