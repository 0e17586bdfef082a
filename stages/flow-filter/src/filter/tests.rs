//! Tests of `filter`.

use etherparse::PacketBuilder;
use proptest::prelude::*;
use sizeleak_frame::{Frame, Segments};

use super::*;

mod state;

/// The filter's frames, whatever the batches, and its counters.
fn flattened(frames: &[Frame], filter: &FlowFilter) -> Vec<String> {
    let mut lines = Vec::new();
    for frame in frames {
        match Segments::try_from(frame.clone()) {
            Ok(segments) => lines.extend(segments.iter().map(|segment| format!("{segment:?}"))),
            Err(frame) => lines.push(format!("{frame:?}")),
        }
    }
    lines.push(format!("{:?}", filter.counters()));
    lines
}

proptest! {
    /// The flow cache changes nothing: without it every packet goes through the general parsers and the flow table.
    #[test]
    fn fast_path_equals_general_path(
        max_flows in 2usize..12,
        packets in prop::collection::vec(
            (0u8..3, 0u16..5, any::<bool>(), 0usize..30, any::<bool>(),
             prop::option::weighted(0.1, (12usize..60, any::<u8>()))),
            1..60,
        ),
    ) {
        let frames = packets.iter().zip(0..).map(|((host, port, reversed, length, in_tunnel, change), sequence)| {
            let (gateway, service) = ([10, 0, 0, 1 + *host], [203, 0, 113, 1]);
            let (ends, ports) = if *reversed {
                ((service, gateway), (443, 5000 + *port))
            } else {
                ((gateway, service), (5000 + *port, 443))
            };
            let mut frame = Vec::new();
            let headers = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(ends.0, ends.1, 64);
            headers.tcp(ports.0, ports.1, sequence, 9).ack(1).write(&mut frame, &vec![7; *length]).unwrap();
            if *in_tunnel {
                let ends = ([198, 51, 100, 1], [198, 51, 100, 2]);
                let inside = frame.split_off(14);
                frame.clear();
                let outer = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(ends.0, ends.1, 64);
                outer.write(&mut frame, etherparse::IpNumber(4), &inside).unwrap();
            }
            if let Some((at, byte)) = change && let Some(place) = frame.get_mut(*at) {
                *place = *byte;
            }
            frame
        });
        let frames: Vec<Vec<u8>> = frames.collect();
        let packets = frames.iter().zip(1..).map(|(data, number)| {
            Packet { time_ns: 7, link_type: 1, original_length: 0, data, capture: 0, number }
        });
        let gateway = vec!["10.0.0.1".to_owned(), "10.0.0.2".to_owned()];
        let options = Options { gateway, max_flows, allow_absent: true, ..Options::default() };

        let mut fast = FlowFilter::new(&options).unwrap();
        let (mut batch, mut fast_frames) = (Packets::new(), Vec::new());
        packets.clone().for_each(|packet| batch.push(packet));
        fast.process(batch, &mut fast_frames).unwrap();

        let mut general = FlowFilter::new(&options).unwrap();
        let mut general_frames = Vec::new();
        for packet in packets {
            let mut batch = Packets::new();
            batch.push(packet);
            general.flow_cache = FlowCache::default();
            general.process(batch, &mut general_frames).unwrap();
        }
        prop_assert_eq!(flattened(&fast_frames, &fast), flattened(&general_frames, &general));
    }
}
