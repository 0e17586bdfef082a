//! Captures read before their turn give the same output as captures read in turn.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sizeleak_frame::{BatchLimit, Frame, Packet};
use sizeleak_platform::runtime::FileProgress;

use super::*;
use crate::capture_driver::fast::run_in_pieces;
use crate::testing::{DriverCounts, GATEWAY, OTHER, pcap_file, prefilter, tcp_packet, with_driver};

/// A capture: milliseconds between the end of the one before and its start, its packets, where it is damaged, and
/// whether it is compressed.
type Written = (i64, u64, Option<usize>, bool);

fn any_captures() -> impl Strategy<Value = Vec<Written>> {
    let distance = prop_oneof![6 => 1i64..50, 1 => -300i64..1];
    let packets = prop_oneof![1 => Just(0u64), 6 => 1u64..400, 2 => 2000u64..4000];
    prop::collection::vec((distance, packets, prop::option::weighted(0.15, 0usize..60_000), any::<bool>()), 2..7)
}

/// Packets a millisecond apart; every fifth one is the gateway's, and longer.
fn content(starts_ms: u64, &(_, packets, damaged, is_compressed): &Written) -> Vec<u8> {
    let packet = |number: u64| {
        let (source, length) = if number.is_multiple_of(5) { (GATEWAY, 600) } else { (OTHER, 60) };
        ((starts_ms + number) * 1000, tcp_packet(source, length, number as u8))
    };
    let mut bytes = pcap_file((0..packets).map(packet));
    if let Some(place) = damaged.and_then(|place| bytes.get_mut(40 + place..44 + place)) {
        place.fill(0xff);
    }
    if is_compressed { zstd::encode_all(&bytes[..], 1).unwrap() } else { bytes }
}

fn write(folder: &Path, captures: &[Written]) -> Vec<PathBuf> {
    let (mut end_ms, mut files) = (1000_u64, Vec::new());
    for (number, capture) in captures.iter().enumerate() {
        let starts_ms = end_ms.saturating_add_signed(capture.0);
        end_ms = starts_ms + capture.1;
        files.push(folder.join(number.to_string()));
        std::fs::write(&files[number], content(starts_ms, capture)).unwrap();
    }
    files
}

/// What a driver emits and counts that prefetches at most this many captures, and alternates in pieces of a size.
fn run_driver(
    files: &[PathBuf],
    selection: &Selection,
    most: usize,
    piece_bytes: Option<usize>,
) -> (Vec<Frame>, DriverCounts) {
    let mut out = Vec::new();
    let (result, counts) = with_driver(files, selection, &Interrupt::new(), &mut out, |driver| {
        driver.prefetcher.most = most;
        match piece_bytes {
            Some(piece_bytes) => run_in_pieces(driver, piece_bytes).map(drop),
            None => driver.run(),
        }
    });
    result.unwrap();
    (out, counts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whether captures follow each other or overlap, are damaged or compressed.
    #[test]
    fn prefetching_does_not_change_the_output(captures in any_captures()) {
        let folder = tempfile::tempdir().unwrap();
        let files = write(folder.path(), &captures);
        let not_dropped = Selection::NotDropped(prefilter(), BatchLimit::Contract);
        for selection in [Selection::All, Selection::Only(prefilter()), not_dropped] {
            let in_turn = run_driver(&files, &selection, 0, None);
            for (most, piece_bytes) in [(1, None), (1, Some(4000)), (3, None), (3, Some(4000)), (MAX_CAPTURES, None)] {
                let prefetched = run_driver(&files, &selection, most, piece_bytes);
                prop_assert_eq!(&prefetched.1, &in_turn.1, "{}", most);
                prop_assert!(prefetched.0 == in_turn.0, "{}: {} frames", most, prefetched.0.len());
            }
        }
    }
}

#[test]
fn no_more_captures_are_prefetched_than_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(folder.path(), &[(1, 10, None, true); 6]);
    let mut prefetcher = Prefetcher::new(Selection::All, Interrupt::new());
    prefetcher.most = 3;
    let batcher = PacketBatcher::new(Selection::All);
    let file = |(path, index): (&PathBuf, u32)| CaptureFile {
        path: path.clone(),
        index,
        starts_ns: i64::from(index),
        is_plain: false,
        progress: FileProgress::default(),
        read_bytes: 256 << 10,
    };
    let mut waiting: VecDeque<CaptureFile> = files.iter().zip(0..).map(file).collect();
    let mut counts = Vec::new();
    while !waiting.is_empty() {
        let next = prefetcher.take_next(&waiting, &batcher);
        assert_eq!(next.map_or(0, |capture| capture.index), waiting.pop_front().unwrap().index);
        counts.push(prefetcher.captures.len());
    }
    assert_eq!(counts, [3, 3, 3, 2, 1, 0]);
}

/// Sends batches of the same packet until some wait; asserts that they take about as much memory as their parcels stand
/// for.
fn assert_parcels_stand_for_memory(selection: Selection, data: &[u8]) {
    let (sender, waiting) = bounded(PARCELS);
    let mut parcels = ParcelSender { parcel: Vec::new(), bytes: 0, sender, wanted: Weak::new() };
    let mut batcher = PacketBatcher::copying_data(selection);
    let packet = Packet { time_ns: 0, link_type: 1, original_length: 60, data, capture: 0, number: 1 };
    while waiting.is_empty() {
        batcher.push(packet, None);
        if batcher.is_due() {
            assert!(parcels.send(batcher.finish().unwrap()).is_ok());
        }
    }
    let (mut room, mut bytes, mut packets) = (0, 0, 0);
    for parcel in waiting.try_iter() {
        room += PARCEL_BYTES;
        bytes += parcel.iter().map(sizeleak_frame::Batch::memory_bytes).sum::<usize>();
        packets += parcel.iter().map(sizeleak_frame::Batch::len).sum::<usize>();
    }
    assert!((room..room + PARCEL_BYTES).contains(&bytes), "{bytes} bytes in parcels for {room}");
    // Each packet takes a row.
    assert!(bytes > packets * (16 + data.len()));
}

#[test]
fn waiting_parcels_stand_for_the_memory_they_take() {
    for length in [0, 60, 1400, 5 << 20] {
        let data = vec![7; length];
        assert_parcels_stand_for_memory(Selection::All, &data);
        assert_parcels_stand_for_memory(Selection::NotDropped(prefilter(), BatchLimit::InProcess), &data);
    }
}
