//! The fast path: application data that comes in order, in a connection at rest.

use sizeleak_frame::{ContentType, Segment};
use sizeleak_runtime::{Closed, Emit};

use crate::chunk::Chunk;
use crate::connection::Connection;
use crate::flow_table::FlowTable;
use crate::record::{Header, WalkerState};
use crate::reporter::Reporter;
use crate::session::RecordDetails;

/// Reports the records of application data that a segment starts with, if it is the next one of a connection at rest.
/// Returns the rest of the segment, which is a segment in order again.
#[inline]
pub(super) fn take<'a>(
    connections: &mut FlowTable<Connection>,
    segment: Segment<'a>,
    reporter: &mut Reporter,
    out: &mut dyn Emit,
) -> Result<Option<Segment<'a>>, Closed> {
    let Segment { flow, direction, .. } = segment;
    if segment.flags & Segment::SYN == 0
        && let Some(connection) = connections.find(flow)
        && let Some((stream, keys)) = connection.at_rest(direction)
        && stream.position.next == segment.sequence
        && stream.walker.version().is_some()
    {
        let walker = &mut stream.walker;
        walker.last_ns = walker.last_ns.max(segment.time_ns);
        let mut rest = Chunk::of(&segment);
        let length = rest.length();
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
            let details = RecordDetails { plaintext: keys.plaintext(header, direction), handshake: false };
            reporter.record(flow, direction, record, details, out)?;
        }
        let sequence = segment.sequence.wrapping_add((length - rest.length()) as u32);
        stream.position.next = sequence;
        let rest = Segment { sequence, length: rest.length() as u32, payload: rest.payload, ..segment };
        return Ok(Some(rest).filter(|rest| rest.length > 0));
    }
    Ok(Some(segment))
}
