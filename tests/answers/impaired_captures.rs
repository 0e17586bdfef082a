//! Captures of simulated homes with lost, late, duplicate or cut packets: records are sized from what remains of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;
use support::alignment;
use support::damage;

use sizeleak_frame::{ContentType, Direction, Record, Segment};
use sizeleak_simulator::{Scenario, SimulatedCapture, Simulation, simulate};
use support::chain::{Carrier, Sized};
use tempfile::TempDir;

const HOMES: [(&str, u64); 3] = [("websocket-tls12-aes", 101), ("mqtt-tls13", 102), ("http-tls12-chacha", 103)];

/// A simulated home and its undamaged records.
struct SimulatedHome {
    name: &'static str,
    scenario: Scenario,
    part: SimulatedCapture,
    truth: Vec<PlacedRecord>,
}

/// A record of the undamaged capture, and the bytes of its direction that it occupies, header included.
struct PlacedRecord {
    stream: (u64, Direction),
    start: u32,
    end: u32,
    record: Record,
}

impl SimulatedHome {
    fn simulate(name: &'static str, seed: u64) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios").join(name).with_extension("toml");
        let scenario = Scenario::from_toml(&fs::read_to_string(file).unwrap()).unwrap();
        let Simulation { test: part, .. } = simulate(&scenario, seed).unwrap();
        let mut home = Self { name, scenario, part, truth: Vec::new() };
        let sized = home.size(&home.part.bytes);
        home.check_against_simulator(&sized);
        home.truth = placed(&sized);
        home
    }

    fn size(&self, pcap: &[u8]) -> Sized {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("home.pcap");
        fs::write(&path, pcap).unwrap();
        let sized = Sized::of(&path, Some(self.scenario.network.gateway));
        assert_eq!(sized.damage, None);
        sized
    }

    /// Checks that every command has as many records and bytes as the simulator says.
    fn check_against_simulator(&self, sized: &Sized) {
        let service = (self.scenario.network.service, self.scenario.network.port).into();
        let is_command = |record: &&Record| {
            record.direction == Direction::ToGateway
                && record.content_type == ContentType::ApplicationData
                && sized.flows[&record.flow].service == service
        };
        for truth in &self.part.truths {
            let carriers: Vec<&Record> = sized
                .records
                .iter()
                .filter(is_command)
                .filter(|record| record.start_ns >= truth.time_ns && record.time_ns <= truth.end_ns)
                .collect();
            let wire_size: usize = carriers.iter().map(|record| record.length as usize).sum();
            assert_eq!((carriers.len(), wire_size), (truth.records, truth.wire_size), "{}: {truth:?}", self.name);
        }
        assert!(!self.part.truths.is_empty());
    }

    /// The share of correctly sized records among those for which `is_there` holds in the damaged capture.
    fn share_sized(&self, damaged: &[u8], is_there: impl Fn(&Coverage, &PlacedRecord) -> bool) -> f64 {
        let sized = self.size(damaged);
        let coverage = coverage(&sized, &self.truth);
        let nowhere = Coverage::default();
        let there = self
            .truth
            .iter()
            .filter(|placed| is_there(coverage.get(&placed.stream).unwrap_or(&nowhere), placed))
            .collect::<Vec<_>>();
        let mut found: BTreeMap<_, usize> = BTreeMap::new();
        sized.records.iter().for_each(|record| *found.entry(identity(record)).or_default() += 1);
        let right = there.iter().filter(|placed| {
            let left = found.get_mut(&identity(&placed.record));
            left.is_some_and(|count| {
                let is_left = *count > 0;
                *count = count.saturating_sub(1);
                is_left
            })
        });
        let (right, there) = (right.count(), there.len());
        println!("{}: {right} of {there} sized, of {} undamaged", self.name, self.truth.len());
        assert!(there > 500, "{there} records are too few to compare");
        right as f64 / there as f64
    }
}

/// What identifies a record in captures whose times were not changed.
fn identity(record: &Record) -> (u64, Direction, u8, u32, i64) {
    (record.flow, record.direction, record.content_type.into(), record.length, record.time_ns)
}

/// Lays the records of an undamaged capture end to end; they must fill the stream of each direction.
fn placed(sized: &Sized) -> Vec<PlacedRecord> {
    let mut all = Vec::new();
    for (stream, records) in sized.by_direction() {
        let carriers = carriers_of(sized, stream);
        let first = carriers.first().unwrap();
        let origin = first.sequence.wrapping_add(u32::from(first.flags & Segment::SYN != 0));
        let mut at = 0;
        for record in records {
            let end = at + 5 + record.length;
            all.push(PlacedRecord {
                stream,
                start: origin.wrapping_add(at),
                end: origin.wrapping_add(end),
                record: record.clone(),
            });
            at = end;
        }
        let last = carriers
            .iter()
            .filter(|carrier| carrier.length > 0)
            .map(|carrier| carrier.sequence.wrapping_sub(origin).wrapping_add(carrier.length));
        assert_eq!(last.filter(|end| *end < 1 << 31).max(), Some(at), "{stream:?} is not all records");
    }
    all
}

fn carriers_of(sized: &Sized, stream: (u64, Direction)) -> Vec<&Carrier> {
    sized.segments.iter().filter(|carrier| (carrier.flow, carrier.direction) == stream).collect()
}

/// Which bytes of one direction a capture contains, as offsets from the first record's first byte.
#[derive(Default)]
struct Coverage {
    origin: u32,
    captured: Vec<Range<u32>>,
}

impl Coverage {
    fn holds(&self, start: u32, end: u32) -> bool {
        let (start, end) = (start.wrapping_sub(self.origin), end.wrapping_sub(self.origin));
        self.captured.iter().any(|range| range.start <= start && end <= range.end)
    }
}

fn coverage(sized: &Sized, truth: &[PlacedRecord]) -> BTreeMap<(u64, Direction), Coverage> {
    let mut all: BTreeMap<(u64, Direction), Coverage> = BTreeMap::new();
    for placed in truth {
        all.entry(placed.stream).or_insert(Coverage { origin: placed.start, captured: Vec::new() });
    }
    for (stream, coverage) in &mut all {
        let mut ranges: Vec<Range<u32>> = carriers_of(sized, *stream)
            .into_iter()
            .filter(|carrier| carrier.captured > 0)
            .map(|carrier| {
                let start = carrier.sequence.wrapping_sub(coverage.origin);
                start..start + carrier.captured
            })
            .collect();
        ranges.sort_by_key(|range| range.start);
        for range in ranges {
            match coverage.captured.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => coverage.captured.push(range),
            }
        }
    }
    all
}

#[test]
fn records_are_sized_where_one_packet_in_a_hundred_is_lost() {
    for (name, seed) in HOMES {
        let home = SimulatedHome::simulate(name, seed);
        let damaged = damage::drop_packets(&home.part.bytes, 0.01, seed);
        let share = home.share_sized(&damaged, |coverage, placed| coverage.holds(placed.start, placed.end));
        assert!(share >= 0.97, "{name}: {share}");
    }
}

#[test]
fn records_are_sized_under_a_snaplen_of_128() {
    for (name, seed) in HOMES {
        let home = SimulatedHome::simulate(name, seed);
        let damaged = damage::cut_packets(&home.part.bytes, 128);
        let share =
            home.share_sized(&damaged, |coverage, placed| coverage.holds(placed.start, placed.start.wrapping_add(5)));
        assert!(share >= 0.97, "{name}: {share}");
    }
}

#[test]
fn records_are_sized_where_packets_are_late_or_duplicate() {
    for (name, seed) in HOMES {
        let home = SimulatedHome::simulate(name, seed);
        let late = damage::delay_packets(&home.part.bytes, 0.15, seed);
        let damaged = damage::repeat_packets(&late, 0.15, seed + 1);
        let sized = home.size(&damaged);
        assert!(overtaken(&sized) > 10, "{name}: too few segments out of order");

        let found = sized.by_direction();
        let expected = home.truth.iter().map(|placed| placed.stream).collect::<BTreeSet<_>>();
        assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), expected);
        for (stream, records) in found {
            let shape = |record: &Record| (u8::from(record.content_type), record.length);
            let truth = home.truth.iter().filter(|placed| placed.stream == stream);
            let truth: Vec<_> = truth.map(|placed| shape(&placed.record)).collect();
            let found: Vec<_> = records.into_iter().map(shape).collect();
            let difference = alignment::align(&truth, &found);
            assert!(truth == found, "{name}, {stream:?}: {difference:?}");
        }
    }
}

/// How many segments arrive after one that follows them in their stream.
fn overtaken(sized: &Sized) -> usize {
    let mut highest: BTreeMap<(u64, Direction), u32> = BTreeMap::new();
    let mut count = 0;
    for carrier in sized.segments.iter().filter(|carrier| carrier.length > 0) {
        let seen = highest.entry((carrier.flow, carrier.direction)).or_insert(carrier.sequence);
        let ahead = carrier.sequence.wrapping_sub(*seen) < 1 << 31;
        count += usize::from(!ahead);
        *seen = if ahead { carrier.sequence } else { *seen };
    }
    count
}
