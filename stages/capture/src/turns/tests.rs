//! What two threads emit by turns, against what one does.

use std::path::PathBuf;
use std::slice::from_ref;

use proptest::prelude::*;
use sizeleak_address::{Networks, Sieve};
use sizeleak_frame::{Batches, Frame, Packets};
use sizeleak_stage::{Closed, Emit, Interrupt, Progress, SourceEmit};

use super::*;
use crate::capture::Failures;
use crate::filling::Selection;
use crate::merge::Merge;

/// A packet: whether it is the gateway's, and its length.
type Written = (bool, usize);

/// Bytes that are TCP in IPv4, of this length or what its headers take.
fn data(&(is_gateways, length): &Written, number: usize) -> Vec<u8> {
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

/// The same, with blocks between them that are no packets.
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
            bytes.extend_from_slice([0xbad, 16, 0, 16].map(u32::to_le_bytes).as_flattened());
        }
    }
    bytes
}

/// What is emitted, and whether it was still wanted.
struct Taken {
    frames: Vec<Frame>,
    most: usize,
}

impl Emit for Taken {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if self.frames.len() == self.most {
            return Err(Closed);
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

/// All that is known in the end: frames, bytes, packets, packets left out, damaged files; and whether it was wanted.
type Outcome = (Vec<Frame>, [u64; 4], bool);

fn emitted(files: &[PathBuf], selection: &Selection, piece_bytes: Option<usize>, most: usize) -> Outcome {
    let (interrupt, mut failures) = (Interrupt::new(), Failures::default());
    let (merge, errors) = Merge::new(files.to_vec(), &interrupt, &Progress::new());
    assert!(errors.is_empty(), "{errors:?}");
    let mut out = Taken { frames: Vec::new(), most };
    let mut emission = Emission::new(merge, selection, &mut failures, &mut out, &interrupt);
    emission.piece_bytes = piece_bytes;
    let ran = emission.run();
    let counts = &emission.filling.counts;
    let known = [emission.merge.bytes, counts.packets, counts.left_out, emission.damaged_files];
    (out.frames, known, ran.is_ok())
}

/// Time, data and number.
type Row = (i64, Vec<u8>, u64);

/// The rows of all batches, how many packets were passed over, and the frames that are no batches.
fn rows(frames: Vec<Frame>) -> (Vec<Row>, u64, Vec<Frame>) {
    let (mut rows, mut passed_over, mut others) = (Vec::new(), 0, Vec::new());
    for frame in frames {
        match Packets::try_from(frame) {
            Ok(batch) => {
                passed_over += batch.passed_over().packets;
                rows.extend(batch.iter().map(|packet| (packet.time_ns, packet.data.to_vec(), packet.number)));
            }
            Err(other) => others.push(other),
        }
    }
    (rows, passed_over, others)
}

fn sieve() -> Sieve {
    Sieve::new(Networks::parse(&["192.168.1.20".to_owned()]).unwrap())
}

/// Packets of every length, some longer than a piece and than the room in front of one.
fn some_packets() -> impl Strategy<Value = Vec<Written>> {
    let length = prop_oneof![60 => 0usize..300, 20 => 300usize..9000, 1 => 60_000usize..200_000];
    prop::collection::vec((prop::bool::weighted(0.3), length), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Wherever pieces end, and wherever the capture is cut.
    #[test]
    fn two_threads_emit_what_one_does(
        packets in some_packets(), is_pcapng: bool, cut in prop::option::of(0usize..5000), piece_bytes in 512usize..20_000,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = if is_pcapng { pcapng(&packets) } else { pcap(&packets) };
        bytes.truncate(bytes.len().saturating_sub(cut.unwrap_or(0)).max(48));
        let file = folder.path().join("capture");
        std::fs::write(&file, bytes).unwrap();
        for selection in [Selection::Only(sieve()), Selection::For(sieve(), Batches::OfContract)] {
            let [one, two] = [None, Some(piece_bytes)].map(|pieces| emitted(from_ref(&file), &selection, pieces, usize::MAX));
            prop_assert!(one == two, "{selection:?}: {:?} and {:?}", one.1, two.1);
        }
        let unseen = Selection::For(sieve(), Batches::OfProcess);
        let [one, two] = [None, Some(piece_bytes)].map(|pieces| emitted(from_ref(&file), &unseen, pieces, usize::MAX));
        prop_assert_eq!(one.1, two.1);
        prop_assert!(rows(one.0) == rows(two.0));
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
    let one = emitted(&written, &selection, None, usize::MAX);
    assert_eq!(one.1[1], 3047);
    assert!(one == emitted(&written, &selection, Some(2000), usize::MAX));
}

#[test]
fn it_ends_when_nobody_wants_more() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("capture");
    std::fs::write(&file, capture_from(0, 3000)).unwrap();
    let selection = Selection::Only(sieve());
    for most in [0, 1, 5] {
        let (frames, _, is_wanted) = emitted(from_ref(&file), &selection, Some(2000), most);
        assert_eq!((frames.len(), is_wanted), (most, false));
    }
}
