//! What two threads emit by turns, against what one does.

use std::path::PathBuf;
use std::slice::from_ref;

use proptest::prelude::*;
use sizeleak_frame::{BatchLimit, Frame, Packets};
use sizeleak_packet::{AddressPrefilter, Networks};
use sizeleak_runtime::{Closed, Emit, Interrupt, Progress, SourceEmit};

use super::*;
use crate::capture::Failures;
use crate::merge::Merge;
use crate::packet_batcher::Selection;

/// A packet: whether it is the gateway's, and its length.
type Written = (bool, usize);

/// Bytes that are TCP in IPv4, of this length or what its headers take.
pub(crate) fn data(&(is_gateways, length): &Written, number: usize) -> Vec<u8> {
    let mut data = vec![number as u8; length.max(54)];
    data[12..15].copy_from_slice(&[8, 0, 0x45]);
    data[23] = 6;
    data[26..30].copy_from_slice(if is_gateways { &[192, 168, 1, 20] } else { &[10, 0, 0, 1] });
    data[30..34].copy_from_slice(&[10, 0, 0, 2]);
    data
}

fn pcap(packets: &[Written]) -> Vec<u8> {
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1].map(u32::to_le_bytes);
    let mut bytes = header.as_flattened().to_vec();
    for (number, packet) in packets.iter().enumerate() {
        let data = data(packet, number);
        let header = [number as u32, 0, data.len() as u32, data.len() as u32].map(u32::to_le_bytes);
        bytes.extend_from_slice(header.as_flattened());
        bytes.extend(data);
    }
    bytes
}

/// The same, with blocks between them that are no packets, some longer than a piece and than the room in front of one.
fn pcapng(packets: &[Written]) -> Vec<u8> {
    let section = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28].map(u32::to_le_bytes);
    let interface = [1, 20, 1, 0, 20].map(u32::to_le_bytes);
    let mut bytes = [section.as_flattened(), interface.as_flattened()].concat();
    for (number, packet) in packets.iter().enumerate() {
        let data = data(packet, number);
        let (length, padded) = (data.len() as u32, data.len().next_multiple_of(4));
        let total = padded as u32 + 32;
        bytes.extend_from_slice([6, total, 0, 0, number as u32, length, length].map(u32::to_le_bytes).as_flattened());
        bytes.extend(data);
        bytes.resize(bytes.len() + padded - length as usize, 0);
        bytes.extend(total.to_le_bytes());
        if number.is_multiple_of(3) {
            let total: u32 = if number % 150 == 60 { 90_016 } else { 16 };
            bytes.extend_from_slice([0xbad, total].map(u32::to_le_bytes).as_flattened());
            bytes.resize(bytes.len() + total as usize - 12, 0);
            bytes.extend(total.to_le_bytes());
        }
    }
    bytes
}

/// What happens when so many frames were emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Close,
    Interrupt,
    Panic,
}

struct Taken {
    frames: Vec<Frame>,
    most: usize,
    then: Then,
    interrupt: Interrupt,
}

impl Emit for Taken {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if self.frames.len() == self.most {
            match self.then {
                Then::Close => return Err(Closed),
                Then::Interrupt => self.interrupt.set(),
                Then::Panic => panic!("as is wanted"),
            }
        }
        self.frames.push(frame);
        Ok(())
    }
}

impl SourceEmit for Taken {
    fn flush(&mut self) -> Result<(), Closed> {
        Ok(())
    }
}

/// All that is known in the end.
#[derive(Debug, PartialEq)]
struct Known {
    frames: Vec<Frame>,
    packets: u64,
    /// Bytes, blocks skipped, packets the snaplen cut, packets left out, damaged files.
    counts: [u64; 5],
    /// Whether it came to the end.
    is_whole: bool,
}

/// What is emitted of these files, and how many pieces were taken by turns.
fn emitted(files: &[PathBuf], selection: &Selection, piece_bytes: Option<usize>) -> (Known, u64) {
    emitted_until(files, selection, piece_bytes, usize::MAX, Then::Close)
}

fn emitted_until(
    files: &[PathBuf],
    selection: &Selection,
    piece_bytes: Option<usize>,
    most: usize,
    then: Then,
) -> (Known, u64) {
    let (interrupt, mut failures) = (Interrupt::new(), Failures::default());
    let (merge, errors) = Merge::new(files.to_vec(), &interrupt, &Progress::new());
    assert!(errors.is_empty(), "{errors:?}");
    let mut out = Taken { frames: Vec::new(), most, then, interrupt: interrupt.clone() };
    let mut emission = CaptureDriver::new(merge, selection, &mut failures, &mut out, &interrupt);
    emission.piece_bytes = piece_bytes;
    let is_whole = emission.run().is_ok();
    let (packets, counts, pieces) = counted(emission);
    (Known { frames: out.frames, packets, counts, is_whole }, pieces)
}

/// Packets, what else was counted, and pieces.
pub(crate) fn counted(emission: CaptureDriver<'_>) -> (u64, [u64; 5], u64) {
    let CaptureDriver { merge, filling, damaged_files, pieces, .. } = emission;
    let counts = filling.counts;
    let others = [merge.bytes, merge.skipped, counts.snaplen_cut, counts.left_out, damaged_files];
    (counts.packets, others, pieces)
}

/// All packets of these frames, what was passed over, and the frames that are no batches.
fn rows(frames: Vec<Frame>) -> (Packets, [u64; 2], Vec<Frame>) {
    let (mut rows, mut passed_over, mut others) = (Packets::new(), [0; 2], Vec::new());
    for frame in frames {
        match Packets::try_from(frame) {
            Ok(batch) => {
                passed_over[0] += batch.skipped_packets().packets;
                passed_over[1] += batch.skipped_packets().bytes;
                batch.iter().for_each(|packet| rows.push(packet));
            }
            Err(other) => others.push(other),
        }
    }
    (rows, passed_over, others)
}

pub(crate) fn sieve() -> AddressPrefilter {
    AddressPrefilter::new(Networks::parse(&["192.168.1.20".to_owned()]).unwrap())
}

/// Packets of every length, some longer than a piece and than the room in front of one.
fn some_packets() -> impl Strategy<Value = Vec<Written>> {
    let length = prop_oneof![60 => 0usize..300, 20 => 300usize..9000, 1 => 60_000usize..200_000];
    prop::collection::vec((prop::bool::weighted(0.3), length), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Wherever pieces end, and wherever the capture is cut or damaged.
    #[test]
    fn two_threads_emit_what_one_does(
        packets in some_packets(), is_pcapng: bool, cut in prop::option::of(0usize..5000),
        damaged in prop::option::weighted(0.2, 0usize..600_000), piece_bytes in 512usize..20_000,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = if is_pcapng { pcapng(&packets) } else { pcap(&packets) };
        bytes.truncate(bytes.len().saturating_sub(cut.unwrap_or(0)).max(48));
        if let Some(place) = damaged.and_then(|place| bytes.get_mut(48 + place..52 + place)) {
            place.fill(0xff);
        }
        let file = folder.path().join("capture");
        std::fs::write(&file, bytes).unwrap();
        for selection in [Selection::Only(sieve()), Selection::For(sieve(), BatchLimit::Contract)] {
            let [one, two] = [None, Some(piece_bytes)].map(|pieces| emitted(from_ref(&file), &selection, pieces).0);
            prop_assert!(one == two, "{selection:?}: {:?} and {:?}", one.counts, two.counts);
        }
        let unseen = Selection::For(sieve(), BatchLimit::InProcess);
        let [one, two] = [None, Some(piece_bytes)].map(|pieces| emitted(from_ref(&file), &unseen, pieces).0);
        prop_assert_eq!((one.packets, one.counts), (two.packets, two.counts));
        prop_assert!(rows(one.frames) == rows(two.frames));
    }

    /// Pieces that come too early, too late, or in parts.
    #[test]
    fn a_piece_is_only_an_offer(
        offers in prop::collection::vec((-9000i64..9000, prop_oneof![1usize..2000, 200_000usize..400_000]), 1..60),
        is_seen: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture");
        std::fs::write(&path, capture_from(0, 6000)).unwrap();
        let batches = if is_seen { BatchLimit::Contract } else { BatchLimit::InProcess };
        let (interrupt, selection, mut failures) = (Interrupt::new(), Selection::For(sieve(), batches), Failures::default());
        let (merge, _) = Merge::new(vec![path.clone()], &interrupt, &Progress::new());
        let mut out = Vec::new();
        let mut emission = CaptureDriver::new(merge, &selection, &mut failures, &mut out, &interrupt);
        emission.piece_bytes = None;
        while emission.merge.lone_file().is_none() {
            prop_assert_eq!(emission.go_on().unwrap(), More::Yes);
        }
        let file = emission.merge.lone_file().map(|(file, _)| file.clone()).unwrap();
        let mut turn = Turn { emission: &mut emission, file: &file, ended: None };
        for (shift, length) in offers {
            let mut piece = Piece::new(length);
            piece.read(&file, turn.reached().saturating_add_signed(shift));
            if turn.go_on_in(&mut piece).unwrap() == More::No {
                break;
            }
        }
        emission.run().unwrap();
        let (one, _) = emitted(from_ref(&path), &selection, None);
        let (packets, counts, _) = counted(emission);
        prop_assert_eq!((packets, counts), (one.packets, one.counts));
        if is_seen {
            prop_assert!(out == one.frames);
        } else {
            prop_assert!(rows(out) == rows(one.frames));
        }
    }
}

/// A packet every other second from that of the first on, and every third of them the gateway's.
fn capture_from(first: u32, packets: usize) -> Vec<u8> {
    let written: Vec<Written> = (0..packets).map(|number| (number.is_multiple_of(3), 700)).collect();
    let mut bytes = pcap(&written);
    for (number, record) in bytes[24..].chunks_mut(716).enumerate() {
        record[..4].copy_from_slice(&(first + 2 * number as u32).to_le_bytes());
    }
    bytes
}

#[test]
fn other_captures_come_between() {
    let folder = tempfile::tempdir().unwrap();
    // The second one goes on behind each of the others, which fall into it.
    let captures = [(0, 3), (10, 3000), (301, 40), (901, 1), (4001, 3)];
    let written = captures.map(|(first, packets)| {
        let file = folder.path().join(first.to_string());
        std::fs::write(&file, capture_from(first, packets)).unwrap();
        file
    });
    let selection = Selection::Only(sieve());
    let (one, _) = emitted(&written, &selection, None);
    assert_eq!(one.packets, 3047);
    let (two, pieces) = emitted(&written, &selection, Some(2000));
    assert!(one == two);
    assert!(pieces > 0);
}

#[test]
fn long_captures_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let written = [0, 10_000, 20_000].map(|first: u32| {
        let file = folder.path().join(first.to_string());
        std::fs::write(&file, capture_from(first, 2000)).unwrap();
        file
    });
    let selection = Selection::For(sieve(), BatchLimit::Contract);
    let (two, pieces) = emitted(&written, &selection, Some(2000));
    assert!(emitted(&written, &selection, None).0 == two);
    assert!(pieces > 0);
}

#[test]
fn it_ends_when_the_stages_behind_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture");
    std::fs::write(&file, capture_from(0, 6000)).unwrap();
    let selection = Selection::Only(sieve());
    let (whole, pieces) = emitted(from_ref(&file), &selection, Some(2000));
    assert!(pieces > 0 && whole.frames.len() > 6);
    for most in 2..6 {
        let until = |then| emitted_until(from_ref(&file), &selection, Some(2000), most, then).0;
        let closed = until(Then::Close);
        assert_eq!((closed.frames.len(), closed.is_whole), (most, false));
        let interrupted = until(Then::Interrupt);
        assert!(interrupted.is_whole && interrupted.packets < whole.packets);
        assert!(whole.frames.starts_with(&interrupted.frames[..=most]));
        assert!(std::panic::catch_unwind(|| until(Then::Panic)).is_err());
    }
}
