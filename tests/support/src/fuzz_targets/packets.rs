//! The packet parser: bytes as packets of any link type, through `flow-filter`.
//!
//! A packet is encoded as its link type, the number of bytes that the snaplen cut off and its length (two bytes each),
//! then its data.

use sizeleak_flow_filter::{FlowFilter, Options};
use sizeleak_frame::{Frame, Packet, Packets};
use sizeleak_platform::runtime::Stage;

use super::input::Bytes;

/// Filters bytes as packets, where every address is a gateway's.
pub fn packet_parser(bytes: &[u8]) {
    let options =
        Options { gateway: vec!["0.0.0.0/0".into(), "::/0".into()], allow_absent: true, ..Options::default() };
    let Ok(mut filter) = FlowFilter::new(&options) else { unreachable!("the options are right") };
    let (packets, data) = packets_of(bytes);
    let mut out: Vec<Frame> = Vec::new();
    filter.process(packets, &mut out).expect("nothing closes");
    filter.finish(&mut out).expect("nothing closes");

    let mut announced = Vec::new();
    let mut payload = 0;
    for frame in &out {
        match frame {
            Frame::Flow(flow) => announced.push(flow.flow),
            Frame::Segments(segments) => {
                for segment in segments.iter() {
                    assert!(announced.contains(&segment.flow), "a flow that was not announced");
                    assert!(segment.payload.len() <= segment.length as usize, "more captured than there was");
                    payload += segment.payload.len();
                }
            }
            _ => {}
        }
    }
    assert!(payload <= data, "more payload than the packets hold");
}

/// Decodes packets from bytes.
pub fn packets(bytes: &[u8]) -> Packets {
    packets_of(bytes).0
}

/// Decodes packets, and counts their bytes of data.
fn packets_of(bytes: &[u8]) -> (Packets, usize) {
    let (mut bytes, mut packets, mut all) = (Bytes::new(bytes), Packets::new(), 0);
    for number in 1.. {
        let (Some(link_type), Some(cut), Some(length)) = (bytes.number(), bytes.number(), bytes.number()) else {
            break;
        };
        let data = bytes.take(length.into());
        all += data.len();
        let original_length = data.len() as u32 + u32::from(cut);
        let time_ns = i64::from(number) * 1_000_000;
        packets.push(Packet { time_ns, link_type, original_length, data, capture: 0, number: number as u64 });
    }
    (packets, all)
}
