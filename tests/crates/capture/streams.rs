//! Packets of a capture that is still being written are emitted as they arrive, until the user stops.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::written::{Read, assert_same, block, little_endian, packets, pcap, some_packets};
use pcap_file::{Endianness, TsResolution};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sizeleak_capture::Capture;
use sizeleak_frame::Frame;
use sizeleak_platform::runtime::{Closed, Emit, Interrupt, Source, SourceEmit, StageError};
use tempfile::TempDir;

/// Collects frames and sends them to the test when flushed, as an output does.
struct Flushed {
    held: Vec<Frame>,
    sender: Sender<Vec<Frame>>,
}

impl Emit for Flushed {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.held.push(frame);
        Ok(())
    }
}

impl SourceEmit for Flushed {
    fn flush(&mut self) -> Result<(), Closed> {
        self.sender.send(std::mem::take(&mut self.held)).map_err(|_| Closed)
    }
}

/// A named pipe that is being read as a capture.
struct Pipe {
    path: PathBuf,
    reader: JoinHandle<Result<(), StageError>>,
    flushed: Receiver<Vec<Frame>>,
    interrupt: Interrupt,
    _folder: TempDir,
}

impl Pipe {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let (sender, flushed) = channel();
        let interrupt = Interrupt::new();
        let (files, stop) = (vec![path.clone()], interrupt.clone());
        let reader = thread::spawn(move || {
            let mut out = Flushed { held: Vec::new(), sender };
            let result = Capture::new(files).run(&mut out, &stop);
            out.flush().unwrap();
            result
        });
        Self { path, reader, flushed, interrupt, _folder: folder }
    }

    fn open(&self) -> File {
        OpenOptions::new().write(true).open(&self.path).unwrap()
    }

    /// Waits until `count` packets have been flushed.
    fn receive(&self, count: usize) -> Vec<Read> {
        let mut received = Vec::new();
        while received.len() < count {
            // Reached only if the test fails.
            let frames = self.flushed.recv_timeout(Duration::from_mins(1)).unwrap();
            received.extend(frames.into_iter().flat_map(packets));
        }
        received
    }

    fn end(self) -> (Result<(), String>, Vec<Read>) {
        let result = self.reader.join().unwrap().map_err(|error| error.to_string());
        (result, self.flushed.iter().flatten().flat_map(packets).collect())
    }
}

#[test]
fn a_packet_is_passed_on_while_the_pipe_stays_open() {
    let pipe = Pipe::new();
    let written = some_packets(3, 7_000);
    let whole = little_endian(&written);
    let mut writer = pipe.open();
    let second = 24 + 16 + written[0].1.len();
    // The first packet, and the second without its last byte.
    let cut = second + 16 + written[1].1.len() - 1;
    writer.write_all(&whole[..cut]).unwrap();
    let mut read = pipe.receive(1);
    writer.write_all(&whole[cut..]).unwrap();
    read.extend(pipe.receive(2));
    assert_same(&read, &written);
    drop(writer);
    assert_eq!(pipe.end(), (Ok(()), vec![]));
}

#[test]
fn a_packet_before_a_block_of_another_kind_is_not_held_back() {
    let section = block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    let interface = block(1, &[1, 0, 0, 0, 0, 0, 0, 0]);
    let packet = block(6, &[0_u32, 0, 5, 4, 4, 0x0102_0304].map(u32::to_le_bytes).concat());
    let pipe = Pipe::new();
    let mut writer = pipe.open();
    writer.write_all(&[section, interface, packet, block(5, &[0; 12])].concat()).unwrap();
    assert_eq!(pipe.receive(1).len(), 1);
    drop(writer);
    assert_eq!(pipe.end(), (Ok(()), vec![]));
}

#[test]
fn a_compressed_stream_is_passed_on_as_it_is_flushed() {
    let pipe = Pipe::new();
    let written = some_packets(2, 7_000);
    let whole = little_endian(&written);
    let mut writer = flate2::write::GzEncoder::new(pipe.open(), flate2::Compression::fast());
    writer.write_all(&whole[..24 + 16 + written[0].1.len()]).unwrap();
    writer.flush().unwrap();
    assert_same(&pipe.receive(1), &written[..1]);
    drop(writer.finish().unwrap());
    assert_eq!(pipe.end(), (Ok(()), vec![]));
}

#[test]
fn a_silent_pipe_ends_when_the_user_stops() {
    let never_opened = Pipe::new();
    never_opened.interrupt.set();
    assert_eq!(never_opened.end(), (Ok(()), vec![]));

    let silent = Pipe::new();
    let writer = silent.open();
    silent.interrupt.set();
    assert_eq!(silent.end(), (Ok(()), vec![]));
    drop(writer);

    let in_a_packet = Pipe::new();
    let written = some_packets(2, 7_000);
    let whole = little_endian(&written);
    let mut writer = in_a_packet.open();
    writer.write_all(&whole[..whole.len() - 1]).unwrap();
    assert_same(&in_a_packet.receive(1), &written[..1]);
    in_a_packet.interrupt.set();
    assert_eq!(in_a_packet.end(), (Ok(()), vec![]), "a cut is not damage when the user stops");
}

/// Interrupts at the first batch, and counts packets.
struct InterruptingOutput(Interrupt, usize);

impl Emit for InterruptingOutput {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.0.set();
        self.1 += packets(frame).len();
        Ok(())
    }
}

impl SourceEmit for InterruptingOutput {
    fn flush(&mut self) -> Result<(), Closed> {
        Ok(())
    }
}

#[test]
fn a_large_file_ends_when_the_user_stops() {
    let folder = TempDir::new().unwrap();
    let file = super::written::file(&folder, "large", &little_endian(&some_packets(100_000, 0)));
    let interrupt = Interrupt::new();
    let mut out = InterruptingOutput(interrupt.clone(), 0);
    Capture::new(vec![file]).run(&mut out, &interrupt).unwrap();
    assert_eq!(out.1, sizeleak_frame::BATCH_ROWS);
}

#[test]
#[ignore = "second tier: needs tcpdump"]
fn tcpdump_output_is_read_from_a_pipe() {
    let written: Vec<_> = some_packets(500, 1_000_000_000)
        .into_iter()
        .map(|(time, data, on_wire)| (time / 1000 * 1000, data, on_wire))
        .collect();
    let folder = TempDir::new().unwrap();
    let source = super::written::file(&folder, "x", &pcap(&written, Endianness::Little, TsResolution::MicroSecond));
    let pipe = Pipe::new();
    let ended = Command::new("tcpdump").arg("-r").arg(source).arg("-U").arg("-w").arg(&pipe.path).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let (result, read) = pipe.end();
    assert_eq!(result, Ok(()));
    assert_same(&read, &written);
}
