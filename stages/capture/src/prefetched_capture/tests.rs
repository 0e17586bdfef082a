//! What threads read before its turn, against what one reads in turn.

use proptest::prelude::*;
use sizeleak_frame::{BatchLimit, Frame, Packet};
use sizeleak_runtime::Progress;

use super::*;
use crate::alternating_readers::tests::{counted, data, sieve};
use crate::capture::Failures;
use crate::capture_driver::{CaptureDriver, More};

/// A capture: how long it begins behind the end of the one before, its packets, where it is damaged, and whether it is compressed.
type Written = (i64, u64, Option<usize>, bool);

fn written() -> impl Strategy<Value = Vec<Written>> {
    let behind = prop_oneof![6 => 1i64..50, 1 => -300i64..1];
    let packets = prop_oneof![1 => Just(0u64), 6 => 1u64..400, 2 => 2000u64..4000];
    prop::collection::vec((behind, packets, prop::option::weighted(0.15, 0usize..60_000), any::<bool>()), 2..7)
}

/// Milliseconds apart; every fifth packet is the gateway's, and that is long.
fn content(begins: i64, &(_, packets, damaged, is_compressed): &Written) -> Vec<u8> {
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1].map(u32::to_le_bytes);
    let mut bytes = header.as_flattened().to_vec();
    for number in 0..packets {
        let packet = if number.is_multiple_of(5) { (true, 600) } else { (false, 60) };
        let data = data(&packet, number as usize);
        let (time_ms, length) = (begins.cast_unsigned() + number, data.len() as u32);
        let time = [time_ms / 1000, time_ms % 1000 * 1000].map(|part| part as u32);
        bytes.extend_from_slice([time[0], time[1], length, length].map(u32::to_le_bytes).as_flattened());
        bytes.extend(data);
    }
    if let Some(place) = damaged.and_then(|place| bytes.get_mut(40 + place..44 + place)) {
        place.fill(0xff);
    }
    if is_compressed { zstd::encode_all(&bytes[..], 1).unwrap() } else { bytes }
}

fn write(folder: &std::path::Path, captures: &[Written]) -> Vec<PathBuf> {
    let (mut ends, mut files) = (1000, Vec::new());
    for (number, capture) in captures.iter().enumerate() {
        let begins = (ends + capture.0).max(0);
        ends = begins + capture.1.cast_signed();
        files.push(folder.join(number.to_string()));
        std::fs::write(&files[number], content(begins, capture)).unwrap();
    }
    files
}

/// What is emitted of these files where so many are read before their turn, and pieces of so many bytes by turns, and what is
/// counted.
fn emitted(
    files: &[PathBuf],
    selection: &Selection,
    (most, piece_bytes): (usize, Option<usize>),
) -> (Vec<Frame>, u64, [u64; 5]) {
    let (interrupt, mut failures, mut out) = (Interrupt::new(), Failures::default(), Vec::new());
    let (merge, _) = Merge::new(files.to_vec(), &interrupt, &Progress::new());
    let mut emission = CaptureDriver::new(merge, selection, &mut failures, &mut out, &interrupt);
    emission.piece_bytes = piece_bytes;
    emission.next_captures = NextCaptures::at_most(most, selection.clone(), interrupt.clone());
    emission.run().unwrap();
    let (packets, counts, _) = counted(emission);
    (out, packets, counts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whether they follow each other or overlap, are damaged or compressed.
    #[test]
    fn however_many_are_read_before_their_turn(captures in written()) {
        let folder = tempfile::tempdir().unwrap();
        let files = write(folder.path(), &captures);
        for selection in [Selection::All, Selection::Only(sieve()), Selection::For(sieve(), BatchLimit::Contract)] {
            let in_turn = emitted(&files, &selection, (0, None));
            for how in [(1, None), (1, Some(4000)), (3, None), (3, Some(4000)), (MOST_CAPTURES, None)] {
                let beside = emitted(&files, &selection, how);
                prop_assert_eq!((beside.1, beside.2), (in_turn.1, in_turn.2), "{:?}", how);
                prop_assert!(beside.0 == in_turn.0, "{:?}: {} and {} frames", how, beside.0.len(), in_turn.0.len());
            }
        }
    }
}

#[test]
fn as_many_are_read_as_may_be() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), &[(1, 10, None, true); 6]);
    let (interrupt, mut failures, mut out) = (Interrupt::new(), Failures::default(), Vec::new());
    let (merge, _) = Merge::new(files, &interrupt, &Progress::new());
    let mut emission = CaptureDriver::new(merge, &Selection::All, &mut failures, &mut out, &interrupt);
    emission.next_captures = NextCaptures::at_most(3, Selection::All, interrupt.clone());
    let mut beside = Vec::new();
    while emission.go_on().unwrap() == More::Yes {
        beside.push(emission.next_captures.reading.len());
    }
    beside.dedup();
    assert_eq!(beside, [3, 2, 1, 0]);
}

/// Fills parcels with a packet again and again until some wait; asserts that they have about as much room as they take.
fn waits_within_its_room(selection: Selection, data: &[u8]) {
    let (sender, parcels) = bounded(PARCELS);
    let mut reading = Reading { parcel: Vec::new(), bytes: 0, sender, is_unwanted: Arc::default() };
    let mut filling = PacketBatcher::new(selection, Keeping::Copied);
    let packet = Packet { time_ns: 0, link_type: 1, original_length: 60, data, capture: 0, number: 1 };
    while parcels.is_empty() {
        filling.take_copy(packet);
        if filling.is_due() {
            assert!(reading.hand_over(filling.finish()).is_ok());
        }
    }
    let (mut room, mut bytes, mut packets) = (0, 0, 0);
    for parcel in parcels.try_iter() {
        room += PARCEL_BYTES;
        if let Parcel::Batches(batches) = parcel {
            bytes += batches.iter().map(|batch| batch.memory_bytes()).sum::<usize>();
            packets += batches.iter().map(|batch| batch.len()).sum::<usize>();
        }
    }
    assert!((room..room + PARCEL_BYTES).contains(&bytes), "{bytes} bytes in a room of {room}");
    // Each packet takes a row.
    assert!(bytes > packets * (16 + data.len()));
}

#[test]
fn packets_wait_in_the_room_that_they_take() {
    for length in [0, 60, 1400, 5 << 20] {
        let data = vec![7; length];
        waits_within_its_room(Selection::All, &data);
        waits_within_its_room(Selection::For(sieve(), BatchLimit::InProcess), &data);
    }
}
