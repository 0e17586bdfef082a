//! Two threads that alternate emit what one thread does.

use std::path::PathBuf;
use std::slice::from_ref;

use proptest::prelude::*;
use sizeleak_frame::{BatchLimit, Frame, Packets};
use sizeleak_platform::runtime::{Closed, Emit, Interrupt, SourceEmit};
use tempfile::TempDir;

use super::*;
use crate::packet_batcher::Selection;
use crate::testing::{DriverCounts, GATEWAY, OTHER, pcap_file, prefilter, tcp_packet, with_driver};

/// A packet: whether it is the gateway's, and its length.
type Written = (bool, usize);

fn data(&(is_gateways, length): &Written, number: usize) -> Vec<u8> {
    tcp_packet(if is_gateways { GATEWAY } else { OTHER }, length, number as u8)
}

fn pcap(packets: &[Written]) -> Vec<u8> {
    let timed = packets.iter().enumerate().map(|(number, packet)| (number as u64 * 1_000_000, data(packet, number)));
    pcap_file(timed)
}

/// The same as pcapng, with other blocks between the packets, some longer than a piece and than its headroom.
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

/// What happens when an output has taken its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtLimit {
    Close,
    Interrupt,
    Panic,
}

/// An output with a limit.
struct LimitedOutput {
    frames: Vec<Frame>,
    most: usize,
    at_limit: AtLimit,
    interrupt: Interrupt,
}

impl Emit for LimitedOutput {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if self.frames.len() == self.most {
            match self.at_limit {
                AtLimit::Close => return Err(Closed),
                AtLimit::Interrupt => self.interrupt.set(),
                AtLimit::Panic => panic!("on purpose"),
            }
        }
        self.frames.push(frame);
        Ok(())
    }
}

impl SourceEmit for LimitedOutput {
    fn flush(&mut self) -> Result<(), Closed> {
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
struct DriverRun {
    frames: Vec<Frame>,
    counts: DriverCounts,
    is_whole: bool,
}

/// Runs a driver over files, alternating in pieces of a size; also returns how many pieces were used.
fn run_driver(files: &[PathBuf], selection: &Selection, piece_bytes: Option<usize>) -> (DriverRun, u64) {
    run_limited(files, selection, piece_bytes, usize::MAX, AtLimit::Close)
}

fn run_limited(
    files: &[PathBuf],
    selection: &Selection,
    piece_bytes: Option<usize>,
    most: usize,
    at_limit: AtLimit,
) -> (DriverRun, u64) {
    let interrupt = Interrupt::new();
    let mut out = LimitedOutput { frames: Vec::new(), most, at_limit, interrupt: interrupt.clone() };
    let (result, counts) = with_driver(files, selection, &interrupt, &mut out, |driver| match piece_bytes {
        Some(piece_bytes) => run_in_pieces(driver, piece_bytes),
        None => driver.run().map(|()| 0),
    });
    (DriverRun { frames: out.frames, counts, is_whole: result.is_ok() }, result.unwrap_or_default())
}

/// All packets of these frames, packets and bytes passed over, and the frames that are not batches.
fn flatten(frames: Vec<Frame>) -> (Packets, [u64; 2], Vec<Frame>) {
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

/// Packets of every length, some longer than a piece and than its headroom.
fn any_packets() -> impl Strategy<Value = Vec<Written>> {
    let length = prop_oneof![60 => 0usize..300, 20 => 300usize..9000, 1 => 60_000usize..200_000];
    prop::collection::vec((prop::bool::weighted(0.3), length), 0..400)
}

fn write(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let file = folder.path().join(name);
    std::fs::write(&file, content).unwrap();
    file
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Wherever pieces end, and wherever the capture is cut or damaged.
    #[test]
    fn two_threads_emit_what_one_does(
        packets in any_packets(), is_pcapng: bool, cut in prop::option::of(0usize..5000),
        damaged in prop::option::weighted(0.2, 0usize..600_000), piece_bytes in 512usize..20_000,
    ) {
        let folder = TempDir::new().unwrap();
        let mut bytes = if is_pcapng { pcapng(&packets) } else { pcap(&packets) };
        bytes.truncate(bytes.len().saturating_sub(cut.unwrap_or(0)).max(48));
        if let Some(place) = damaged.and_then(|place| bytes.get_mut(48 + place..52 + place)) {
            place.fill(0xff);
        }
        let file = write(&folder, "capture", &bytes);
        for selection in [Selection::Only(prefilter()), Selection::NotDropped(prefilter(), BatchLimit::Contract)] {
            let [one, two] = [None, Some(piece_bytes)].map(|pieces| run_driver(from_ref(&file), &selection, pieces).0);
            prop_assert!(one == two, "{selection:?}: {:?} and {:?}", one.counts, two.counts);
        }
        let cut_anywhere = Selection::NotDropped(prefilter(), BatchLimit::InProcess);
        let [one, two] = [None, Some(piece_bytes)].map(|pieces| run_driver(from_ref(&file), &cut_anywhere, pieces).0);
        prop_assert_eq!(one.counts, two.counts);
        prop_assert!(flatten(one.frames) == flatten(two.frames));
    }

    /// Pieces that come too early, too late, or in parts.
    #[test]
    fn pieces_that_do_not_follow_are_ignored(
        offers in prop::collection::vec((-9000i64..9000, prop_oneof![1usize..2000, 200_000usize..400_000]), 1..60),
        of_contract: bool,
    ) {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, "capture", &capture_from(0, 6000));
        let batches = if of_contract { BatchLimit::Contract } else { BatchLimit::InProcess };
        let (interrupt, selection) = (Interrupt::new(), Selection::NotDropped(prefilter(), batches));
        let mut out = Vec::new();
        let ((), counts) = with_driver(from_ref(&path), &selection, &interrupt, &mut out, |driver| {
            while driver.merge.sole_plain_file().is_none() {
                assert!(driver.step().unwrap().is_continue());
            }
            let reader = &driver.merge.sole_plain_file().unwrap().reader;
            let file = reader.window.plain_file().unwrap().clone();
            let mut turn = Turn { driver, capture: 0, pieces: 0, ended: None };
            for (shift, length) in offers {
                let mut piece = Piece::new(length);
                piece.read(&file, turn.position().saturating_add_signed(shift));
                if turn.consume(&mut piece).unwrap().is_break() {
                    break;
                }
            }
            driver.run().unwrap();
        });
        let (one, _) = run_driver(from_ref(&path), &selection, None);
        prop_assert_eq!(counts, one.counts);
        if of_contract {
            prop_assert!(out == one.frames);
        } else {
            prop_assert!(flatten(out) == flatten(one.frames));
        }
    }
}

/// A packet every other second from `first` on, every third of them the gateway's.
fn capture_from(first: u64, packets: u64) -> Vec<u8> {
    pcap_file((0..packets).map(|number| {
        let packet = (number.is_multiple_of(3), 700);
        ((first + 2 * number) * 1_000_000, data(&packet, number as usize))
    }))
}

#[test]
fn alternation_pauses_while_other_captures_come_between() {
    let folder = TempDir::new().unwrap();
    // The second capture continues after each of the others, whose times are within it.
    let captures = [(0, 3), (10, 3000), (301, 40), (901, 1), (4001, 3)];
    let files = captures.map(|(first, packets)| write(&folder, &first.to_string(), &capture_from(first, packets)));
    let selection = Selection::Only(prefilter());
    let (one, _) = run_driver(&files, &selection, None);
    assert_eq!(one.counts.packets.packets, 3047);
    let (two, pieces) = run_driver(&files, &selection, Some(2000));
    assert!(one == two);
    assert!(pieces > 0);
}

#[test]
fn long_captures_in_sequence_are_all_read() {
    let folder = TempDir::new().unwrap();
    let files = [0, 10_000, 20_000].map(|first: u64| write(&folder, &first.to_string(), &capture_from(first, 2000)));
    let selection = Selection::NotDropped(prefilter(), BatchLimit::Contract);
    let (two, pieces) = run_driver(&files, &selection, Some(2000));
    assert!(run_driver(&files, &selection, None).0 == two);
    assert!(pieces > 0);
}

#[test]
fn both_threads_end_when_the_output_closes_the_user_stops_or_one_panics() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "capture", &capture_from(0, 6000));
    let selection = Selection::Only(prefilter());
    let (whole, pieces) = run_driver(from_ref(&file), &selection, Some(2000));
    assert!(pieces > 0 && whole.frames.len() > 6);
    for most in 2..6 {
        let until = |at_limit| run_limited(from_ref(&file), &selection, Some(2000), most, at_limit).0;
        let closed = until(AtLimit::Close);
        assert_eq!((closed.frames.len(), closed.is_whole), (most, false));
        let interrupted = until(AtLimit::Interrupt);
        assert!(interrupted.is_whole && interrupted.counts.packets.packets < whole.counts.packets.packets);
        assert!(whole.frames.starts_with(&interrupted.frames[..=most]));
        assert!(std::panic::catch_unwind(|| until(AtLimit::Panic)).is_err());
    }
}
