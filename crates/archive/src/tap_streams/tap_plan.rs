//! How the streams of several taps are merged, as their profiles say.

use sizeleak_frame::{Frame, Notice, Segment, what};

use crate::tap_streams::STAGE;
use crate::tap_streams::flow_bytes::{FlowBytes, PrimaryTaps};
use crate::tap_streams::segment_sample::SegmentSample;
use crate::tap_streams::tap_clock::TapClock;

/// Less drift than this, in nanoseconds, is not worth a word.
const LEAST_SAID_NS: u64 = 1_000_000;

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
        let drift = Some(clock.drift_ns).filter(|drift| drift.unsigned_abs() >= LEAST_SAID_NS);
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
}
