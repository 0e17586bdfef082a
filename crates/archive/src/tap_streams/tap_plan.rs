//! How the streams of several taps are merged, as their profiles say.

use std::collections::BTreeMap;

use sizeleak_frame::{Frame, Notice, Segment, what};

use crate::tap_streams::STAGE;
use crate::tap_streams::known_traffic::SegmentKey;
use crate::tap_streams::tap_clock::TapClock;

/// Less drift than this, in nanoseconds, is not worth a word.
const MIN_SAID_NS: u64 = 1_000_000;

/// What one tap saw: enough to compare it with others.
#[derive(Debug)]
pub struct TapProfile {
    name: String,
    sample: SegmentSample,
    bytes: FlowBytes,
    segments: u64,
}

impl TapProfile {
    /// The profile of a tap that has seen nothing yet.
    pub fn new(name: String) -> Self {
        Self { name, sample: SegmentSample::default(), bytes: FlowBytes::default(), segments: 0 }
    }

    /// Takes a frame of the tap's stream.
    pub fn add(&mut self, frame: &Frame) {
        if let Frame::Segments(segments) = frame {
            for segment in segments.iter() {
                self.add_segment(&segment);
            }
        }
    }

    fn add_segment(&mut self, segment: &Segment<'_>) {
        self.segments += 1;
        self.sample.add(segment);
        self.bytes.add(segment);
    }

    /// How many segments it saw.
    pub fn segments(&self) -> u64 {
        self.segments
    }
}

/// The clock of each tap, and the primary tap of each flow.
#[derive(Debug)]
pub struct TapPlan {
    pub(crate) names: Vec<String>,
    pub(crate) clocks: Vec<ComparedClock>,
    pub(crate) primaries: PrimaryTaps,
}

/// The clock of a tap, and the tap it was compared to.
#[derive(Debug)]
pub(crate) struct ComparedClock {
    pub(crate) clock: TapClock,
    to: Option<usize>,
}

impl TapPlan {
    /// The plan for these taps. The clock of the first one is that of all; one that has no segment in common with it is
    /// compared to another one.
    pub fn of(taps: Vec<TapProfile>) -> Self {
        let clocks = compared_clocks(&taps);
        let primaries = PrimaryTaps::of(&taps.iter().map(|tap| &tap.bytes).collect::<Vec<_>>());
        Self { names: taps.into_iter().map(|tap| tap.name).collect(), clocks, primaries }
    }

    /// The clocks of the taps.
    pub fn clocks(&self) -> impl Iterator<Item = &TapClock> {
        self.clocks.iter().map(|compared| &compared.clock)
    }

    /// What is said of the clocks of all taps but the first.
    pub(crate) fn notices(&self) -> impl Iterator<Item = Notice> {
        let details = self.names.iter().zip(&self.clocks).skip(1).map(|(name, compared)| self.sentence(name, compared));
        details.map(|detail| Notice {
            time_ns: None,
            stage: STAGE.into(),
            flow: None,
            what: what::CLOCK.into(),
            bytes: None,
            detail: Some(detail),
        })
    }

    fn sentence(&self, name: &str, ComparedClock { clock, to }: &ComparedClock) -> String {
        let other = to.and_then(|to| self.names.get(to)).map_or("any other", String::as_str);
        if clock.matches == 0 {
            return format!("tap `{name}` has no segment in common with {other} tap: its clock is taken as it is");
        }
        let side = if clock.offset_ns < 0 { "behind" } else { "ahead of" };
        let drift = Some(clock.drift_ns).filter(|drift| drift.unsigned_abs() >= MIN_SAID_NS);
        let drift = drift.map_or_else(String::new, |drift| format!(", with a drift of {:+.3} s", seconds(drift)));
        format!(
            "the clock of tap `{name}` is {:.3} s {side} that of the first tap{drift}: its times are corrected by that, \
             by {} segments that `{other}` saw, too",
            seconds(clock.offset_ns).abs(),
            clock.matches
        )
    }
}

fn seconds(time_ns: i64) -> f64 {
    time_ns as f64 / 1e9
}

/// The clocks, each by the tap whose clock is known already that has most segments in common with it.
fn compared_clocks(taps: &[TapProfile]) -> Vec<ComparedClock> {
    let mut known: Vec<Option<ComparedClock>> = taps.iter().map(|_| None).collect();
    while let Some(first_unknown) = known.iter().position(Option::is_none) {
        let pairs = (0..taps.len()).filter(|tap| known.get(*tap).is_some_and(Option::is_none)).flat_map(|tap| {
            known.iter().enumerate().filter_map(move |(to, clock)| Some((tap, to, &clock.as_ref()?.clock)))
        });
        let compared = pairs.filter_map(|(tap, to, clock)| {
            let (one, other) = (taps.get(tap)?, taps.get(to)?);
            let times = one.sample.common(&other.sample);
            let times: Vec<_> = times.map(|(own_ns, other_ns)| (own_ns, clock.corrected(other_ns))).collect();
            Some((tap, to, times)).filter(|(.., times)| !times.is_empty())
        });
        let most = compared.reduce(|best, next| if next.2.len() > best.2.len() { next } else { best });
        let (tap, clock) = match most {
            Some((tap, to, times)) => (tap, ComparedClock { clock: TapClock::estimated(&times), to: Some(to) }),
            None => (first_unknown, ComparedClock { clock: TapClock::as_it_is(), to: None }),
        };
        if let Some(slot) = known.get_mut(tap) {
            *slot = Some(clock);
        }
    }
    known.into_iter().flatten().collect()
}

/// Of at most this many flows it is known how much a tap saw: those with the least numbers, which are digests. That takes
/// about 5 MB.
const MAX_FLOWS: usize = 1 << 17;

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
        if self.flows.len() > MAX_FLOWS {
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

/// At most this many segments are in a sample, which takes about 5 MB.
const MAX_SAMPLED: usize = 1 << 17;

/// The times of those segments whose keys are the least. Taps that saw the same traffic sample the same segments, however
/// much there is of it.
#[derive(Debug, Default)]
pub(crate) struct SegmentSample {
    /// The time of each; `None` if the tap saw several segments of one key, which tell nothing about its clock.
    times: BTreeMap<SegmentKey, Option<i64>>,
}

impl SegmentSample {
    /// Adds a segment, if it has payload: empty ones are often alike.
    pub(crate) fn add(&mut self, segment: &Segment<'_>) {
        if segment.length == 0 {
            return;
        }
        let seen = self.times.entry(SegmentKey::of(segment)).and_modify(|time| *time = None);
        seen.or_insert(Some(segment.time_ns));
        if self.times.len() > MAX_SAMPLED {
            self.times.pop_last();
        }
    }

    /// The times of segments that both taps saw once: here, and there.
    pub(crate) fn common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (i64, i64)> {
        self.times.iter().filter_map(|(key, time)| Some(((*time)?, (*other.times.get(key)?)?)))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Direction, Segments};

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// A tap that saw these segments, one a second, with a clock that is ahead.
    fn tap(name: &str, sequences: std::ops::Range<u32>, ahead_s: i64) -> TapProfile {
        let mut profile = TapProfile::new(name.to_owned());
        let mut segments = Segments::new();
        for sequence in sequences {
            let (time_ns, direction) = ((i64::from(sequence) + ahead_s) * SECOND, Direction::ToGateway);
            let (flow, flags, length, payload) = (1, Segment::ACK, 1, &[7][..]);
            segments.push(Segment {
                time_ns,
                flow,
                direction,
                sequence,
                flags,
                length,
                payload,
                acknowledgement: None,
            });
        }
        profile.add(&segments.into());
        profile
    }

    #[test]
    fn clock_is_that_of_the_first_tap_also_by_way_of_another() {
        let plan = TapPlan::of(vec![tap("lan", 0..50, 0), tap("far", 80..100, 70), tap("wan", 40..90, -9)]);
        let offsets: Vec<i64> = plan.clocks().map(|clock| clock.offset_ns / SECOND).collect();
        assert_eq!(offsets, [0, 70, -9]);
        let said: Vec<String> = plan.notices().filter_map(|notice| notice.detail).collect();
        assert!(
            said[0].contains("`far` is 70.000 s ahead of") && said[0].contains("10 segments that `wan` saw"),
            "{said:?}"
        );
        assert!(
            said[1].contains("`wan` is 9.000 s behind") && said[1].contains("10 segments that `lan` saw"),
            "{said:?}"
        );
    }

    #[test]
    fn taps_without_a_common_segment_keep_their_clocks() {
        let plan = TapPlan::of(vec![tap("lan", 0..50, 0), tap("wan", 60..90, 5), tap("far", 80..95, 8)]);
        let offsets: Vec<(i64, u64)> = plan.clocks().map(|clock| (clock.offset_ns / SECOND, clock.matches)).collect();
        assert_eq!(offsets, [(0, 0), (0, 0), (3, 10)]);
        let said: Vec<String> = plan.notices().filter_map(|notice| notice.detail).collect();
        assert!(said[0].contains("`wan` has no segment in common with any other tap"), "{said:?}");
    }

    fn flow_bytes(flows: &[(u64, &'static [u8])]) -> FlowBytes {
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
        let one = flow_bytes(&[(1, &[0; 10]), (2, &[0; 5]), (2, &[0; 3]), (3, &[0; 4])]);
        let other = flow_bytes(&[(1, &[0; 9]), (2, &[0; 9]), (3, &[0; 4]), (4, &[0; 1])]);
        let primaries = PrimaryTaps::of(&[&one, &other]);
        assert_eq!([1, 2, 3, 4, 5].map(|flow| primaries.of_flow(flow)), [0, 1, 0, 1, 1]);
        let primaries = PrimaryTaps::of(&[&other, &one]);
        assert_eq!([1, 2, 3, 4, 5].map(|flow| primaries.of_flow(flow)), [1, 0, 0, 0, 0]);
    }

    fn segment(sequence: u32, time_ns: i64) -> Segment<'static> {
        Segment {
            time_ns,
            flow: 1,
            direction: Direction::ToGateway,
            sequence,
            flags: Segment::ACK,
            length: 1,
            payload: &[1],
            acknowledgement: None,
        }
    }

    #[test]
    fn segments_that_both_saw_once_are_common() {
        let (mut one, mut other) = (SegmentSample::default(), SegmentSample::default());
        (0..5).for_each(|number| one.add(&segment(number, number.into())));
        (2..9).for_each(|number| other.add(&segment(number, i64::from(number) + 100)));
        other.add(&segment(3, 500));
        let mut common: Vec<_> = one.common(&other).collect();
        common.sort_unstable();
        assert_eq!(common, [(2, 102), (4, 104)]);
    }

    #[test]
    fn samples_of_much_traffic_are_bounded_and_have_the_same_segments() {
        let (mut one, mut other) = (SegmentSample::default(), SegmentSample::default());
        let all = 3 * MAX_SAMPLED as u32;
        (0..all).for_each(|number| one.add(&segment(number, 0)));
        (0..all).rev().for_each(|number| other.add(&segment(number, 0)));
        assert_eq!((one.times.len(), one.common(&other).count()), (MAX_SAMPLED, MAX_SAMPLED));
        // A segment that was dropped does not come back by its repetition.
        (0..all).for_each(|number| one.add(&segment(number, 0)));
        assert_eq!(one.common(&other).count(), 0);
    }
}
