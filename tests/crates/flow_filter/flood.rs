//! The number of tracked flows stays within its limit, however many flows there are.

use super::traffic::{GATEWAY, SERVICE, options, tcp};
use sizeleak_flow_filter::FlowFilter;
use sizeleak_frame::{BatchLimit, Frame, Packet, Packets};
use sizeleak_platform::runtime::{Closed, Emit, Stage};

/// Counts frames and keeps none.
#[derive(Default)]
struct FrameCounter {
    flows: u64,
    rows: u64,
    evicted: u64,
}

impl Emit for FrameCounter {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        match &frame {
            Frame::Flow(_) => self.flows += 1,
            Frame::Segments(batch) => self.rows += batch.len() as u64,
            Frame::Notice(notice) => self.evicted += u64::from(notice.what == "evicted"),
            _ => {}
        }
        Ok(())
    }
}

/// How many flows the filter tracks: those announced less those evicted.
fn tracked(filter: &FlowFilter, out: &FrameCounter) -> u64 {
    let counters = filter.counters();
    out.flows - counters.iter().find(|(name, _)| *name == "forgotten_flows").unwrap().1
}

#[test]
fn tracked_flows_stay_within_the_limit_in_a_flood_of_a_million() {
    const FLOOD: u32 = 1_000_000;
    let mut filter = FlowFilter::new(&options("192.168.1.20")).unwrap();
    let limit = sizeleak_flow_filter::Options::default().max_flows as u64;
    let mut syn = tcp(SERVICE, (40_000, 443), GATEWAY, 1, b"");
    syn[14 + 20 + 13] = 2;
    let mut out = FrameCounter::default();
    let mut batch = Packets::new();
    for number in 0..FLOOD {
        syn[14 + 12..14 + 16].copy_from_slice(&(0x0800_0000 + number).to_be_bytes());
        let time_ns = i64::from(number) * 1_000;
        batch.push(Packet {
            time_ns,
            link_type: 1,
            original_length: 54,
            data: &syn,
            capture: 0,
            number: number.into(),
        });
        if batch.is_full(BatchLimit::Contract) {
            filter.process(std::mem::take(&mut batch), &mut out).unwrap();
            assert!(tracked(&filter, &out) <= limit);
        }
    }
    filter.process(batch, &mut out).unwrap();
    filter.finish(&mut out).unwrap();
    assert!(tracked(&filter, &out) <= limit && limit <= 100_000);
    assert_eq!((out.flows, out.rows, out.evicted), (FLOOD.into(), FLOOD.into(), 1));
}
