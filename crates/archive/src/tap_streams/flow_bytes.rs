//! How much of each flow a tap captured, and which tap captured most of it.

use std::collections::BTreeMap;

use sizeleak_frame::Segment;

/// Of at most this many flows it is known how much a tap saw: those with the least numbers, which are digests. That takes
/// about 5 MB.
const MOST_FLOWS: usize = 1 << 17;

/// Bytes of payload that a tap captured.
#[derive(Debug, Default)]
pub(crate) struct FlowBytes {
    flows: BTreeMap<u64, u64>,
    total: u64,
}

impl FlowBytes {
    /// Counts the payload of a segment, as far as the snaplen left it.
    pub(crate) fn add(&mut self, segment: &Segment<'_>) {
        let bytes = segment.payload.len() as u64;
        self.total = self.total.saturating_add(bytes);
        let flow = self.flows.entry(segment.flow).or_default();
        *flow = flow.saturating_add(bytes);
        if self.flows.len() > MOST_FLOWS {
            self.flows.pop_last();
        }
    }
}

/// Which tap is the primary one of each flow.
#[derive(Debug)]
pub(crate) struct PrimaryTaps {
    /// The flows of which another tap than the usual one captured most.
    others: BTreeMap<u64, usize>,
    /// The tap that captured most of all.
    usual: usize,
}

impl PrimaryTaps {
    /// The taps that captured most of each flow. Of several that captured as much, the first one.
    pub(crate) fn of(taps: &[&FlowBytes]) -> Self {
        let usual = first_greatest(taps.iter().map(|tap| tap.total));
        let mut others = BTreeMap::new();
        for flow in taps.iter().flat_map(|tap| tap.flows.keys()) {
            let primary = first_greatest(taps.iter().map(|tap| tap.flows.get(flow).copied().unwrap_or_default()));
            if primary != usual {
                others.insert(*flow, primary);
            }
        }
        Self { others, usual }
    }

    /// The primary tap of a flow.
    pub(crate) fn of_flow(&self, flow: u64) -> usize {
        self.others.get(&flow).copied().unwrap_or(self.usual)
    }
}

fn first_greatest(bytes: impl Iterator<Item = u64>) -> usize {
    let greatest = bytes.enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    greatest.map_or(0, |(tap, _)| tap)
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Direction;

    use super::*;

    fn tap(flows: &[(u64, &'static [u8])]) -> FlowBytes {
        let mut bytes = FlowBytes::default();
        for (flow, payload) in flows {
            let direction = Direction::ToGateway;
            let (time_ns, flow, flags, length) = (0, *flow, Segment::ACK, 100);
            let segment =
                Segment { time_ns, flow, direction, sequence: 0, flags, length, payload, acknowledgement: None };
            bytes.add(&segment);
        }
        bytes
    }

    #[test]
    fn tap_that_captured_most_of_a_flow_is_its_primary_and_the_first_of_equals() {
        let one = tap(&[(1, &[0; 10]), (2, &[0; 5]), (2, &[0; 3]), (3, &[0; 4])]);
        let other = tap(&[(1, &[0; 9]), (2, &[0; 9]), (3, &[0; 4]), (4, &[0; 1])]);
        let primaries = PrimaryTaps::of(&[&one, &other]);
        assert_eq!([1, 2, 3, 4, 5].map(|flow| primaries.of_flow(flow)), [0, 1, 0, 1, 1]);
        let primaries = PrimaryTaps::of(&[&other, &one]);
        assert_eq!([1, 2, 3, 4, 5].map(|flow| primaries.of_flow(flow)), [1, 0, 0, 0, 0]);
    }
}
