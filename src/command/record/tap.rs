//! The capture of an experiment: packets from a program or an interface, into files, with the time of each by both
//! clocks.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use sizeleak_capture::{CaptureReader, CapturedPacket, Tcpdump};
use sizeleak_frame::{Packet, Packets};
use sizeleak_packet::{AddressSet, CapturedBytes, IpPacket, TransportSegment, ip_bytes};
use sizeleak_traffic::strip::{CaptureFormat, CaptureWriter};

use super::sender::{end, now_ns, shell};

const MAX_WAITING_PACKETS: usize = 1 << 14;

/// A file of a capture is followed by another one after so many bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A capture that has not begun by then does not begin: one over a network asks for passwords first.
const MAX_BEGINNING: Duration = Duration::from_secs(30);

/// The clocks are compared over so many packets: one of them was passed on at once.
const COMPARED: usize = 256;

pub(super) struct Tap {
    /// Single packets, each with its time by the clock of this machine.
    arrivals: Receiver<(i64, Packets)>,
    /// Gets a word when the capture's header was read.
    begun: Receiver<()>,
    program: Program,
    folder: PathBuf,
    gateway: AddressSet,
    files: Vec<PathBuf>,
    output: Option<Output>,
    last: Instant,
    /// How far the clock of this machine was ahead when each of the last packets arrived.
    ahead_ns: VecDeque<i64>,
    pub(super) packets: u64,
}

enum Program {
    Tcpdump(Tcpdump),
    /// A command of the user's, which would not notice the end before its next packet.
    Own {
        child: Child,
        text: String,
    },
}

struct Output {
    file: File,
    writer: CaptureWriter<Blocks>,
    blocks: Blocks,
    bytes: u64,
}

impl Output {
    fn write(&mut self, packet: Packet<'_>) -> io::Result<()> {
        self.writer.write(packet)?;
        let blocks = self.blocks.0.take();
        self.bytes += blocks.len() as u64;
        // One write for each packet: a recording that is killed leaves whole ones.
        self.file.write_all(&blocks)
    }
}

/// What a writer has written, so that a packet reaches its file whole.
#[derive(Clone, Default)]
struct Blocks(Rc<RefCell<Vec<u8>>>);

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn captures(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut captures = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    captures.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("capture-") && name.ends_with(".pcapng")
    });
    captures.sort();
    Ok(captures)
}

impl Tap {
    pub(super) fn of_interface(interface: &str, folder: &Path, gateway: AddressSet) -> anyhow::Result<Self> {
        let (tcpdump, output) = Tcpdump::start(interface, None, None)?;
        Self::new(Program::Tcpdump(tcpdump), output, folder, gateway)
    }

    pub(super) fn of_command(text: &str, folder: &Path, gateway: AddressSet) -> anyhow::Result<Self> {
        let child = shell(text).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("`{text}` cannot be started"))?;
        let output = child.stdout.take().ok_or_else(|| anyhow!("`{text}` has no stdout"))?;
        Self::new(Program::Own { child, text: text.to_owned() }, output, folder, gateway)
    }

    fn new(program: Program, output: ChildStdout, folder: &Path, gateway: AddressSet) -> anyhow::Result<Self> {
        let (sender, arrivals) = bounded(MAX_WAITING_PACKETS);
        let (begins, begun) = bounded(1);
        thread::spawn(move || read(Box::new(output), &begins, &sender));
        Ok(Self {
            arrivals,
            begun,
            program,
            files: captures(folder)?,
            folder: folder.to_owned(),
            gateway,
            output: None,
            last: Instant::now(),
            ahead_ns: VecDeque::new(),
            packets: 0,
        })
    }

    /// Waits until the capture runs: what is commanded before would not be seen. False if it does not begin.
    pub(super) fn wait_for_begin(&self) -> bool {
        self.begun.recv_timeout(MAX_BEGINNING).is_ok()
    }

    /// Takes packets for a while. False if the capture has ended.
    pub(super) fn take(&mut self, time: Duration) -> anyhow::Result<bool> {
        let end = Instant::now() + time;
        loop {
            match self.arrivals.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((arrived_ns, packets)) => packets.iter().try_for_each(|packet| self.keep(arrived_ns, packet))?,
                Err(RecvTimeoutError::Timeout) => return Ok(true),
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
            }
        }
    }

    /// Takes packets until the gateway has been silent for `silence`, or for `most`. False if the capture has ended.
    pub(super) fn wait_for_silence(&mut self, silence: Duration, most: Duration) -> anyhow::Result<bool> {
        let start = Instant::now();
        loop {
            if !self.take(Duration::from_millis(10))? {
                return Ok(false);
            }
            if start.elapsed() >= most || (start.elapsed() >= silence && self.last.elapsed() >= silence) {
                return Ok(true);
            }
        }
    }

    /// How far the clock of this machine is ahead of the capture's, in nanoseconds. The packet that came fastest says it.
    pub(super) fn ahead_ns(&self) -> i64 {
        self.ahead_ns.iter().copied().min().unwrap_or(0)
    }

    /// How much later than the fastest packet the slowest of the last ones came.
    pub(super) fn lateness(&self) -> Duration {
        let slowest = self.ahead_ns.iter().copied().max().unwrap_or(0);
        Duration::from_nanos(slowest.saturating_sub(self.ahead_ns()).unsigned_abs())
    }

    /// The captures so far, all of them on the disk.
    pub(super) fn files(&mut self) -> anyhow::Result<&[PathBuf]> {
        let synced = self.output.as_ref().map_or(Ok(()), |output| output.file.sync_data());
        synced.with_context(|| self.last_file())?;
        Ok(&self.files)
    }

    pub(super) fn fault(&mut self) -> anyhow::Error {
        match &mut self.program {
            Program::Tcpdump(tcpdump) => tcpdump.fault().into(),
            Program::Own { child, text } => {
                let status = child.try_wait().ok().flatten();
                let status = status.map_or_else(String::new, |status| format!(" ({status})"));
                anyhow!(
                    "the capture is none, or has ended{status}: `sh -c {text}` must write pcap or pcapng to stdout all the time"
                )
            }
        }
    }

    fn last_file(&self) -> String {
        self.files.last().map_or_else(String::new, |file| file.display().to_string())
    }

    fn is_data(&self, packet: Packet<'_>) -> bool {
        let frame = CapturedBytes::frame(packet.data, packet.original_length);
        let packet = ip_bytes(packet.link_type, frame).ok().and_then(IpPacket::read);
        let packet =
            packet.filter(|packet| [packet.source, packet.destination].iter().any(|end| self.gateway.contains(*end)));
        let segment = packet.and_then(|packet| TransportSegment::read(&packet).ok());
        segment.is_some_and(|segment| segment.payload.length() > 0)
    }

    fn keep(&mut self, arrived_ns: i64, packet: Packet<'_>) -> anyhow::Result<()> {
        if self.ahead_ns.len() == COMPARED {
            self.ahead_ns.pop_front();
        }
        self.ahead_ns.push_back(arrived_ns - packet.time_ns);
        if self.is_data(packet) {
            self.packets += 1;
            self.last = Instant::now();
        }
        if self.output.as_ref().is_none_or(|output| output.bytes > MAX_FILE_BYTES) {
            let number = self.files.len() + 1;
            let path = self.folder.join(format!("capture-{number:04}.pcapng"));
            let file = File::create_new(&path).with_context(|| path.display().to_string())?;
            let blocks = Blocks::default();
            let writer = CaptureWriter::new(blocks.clone(), CaptureFormat::Pcapng);
            self.output = Some(Output { file, writer, blocks, bytes: 0 });
            self.files.push(path);
        }
        let written = self.output.as_mut().map_or(Ok(()), |output| output.write(packet));
        written.with_context(|| self.last_file())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Self::Own { child, .. } = self {
            end(child);
        }
    }
}

fn read(output: Box<dyn Read + Send>, begins: &Sender<()>, sender: &Sender<(i64, Packets)>) {
    let Ok(mut reader) = CaptureReader::new(output) else { return };
    _ = begins.send(());
    while let Ok(Some(CapturedPacket { time_ns, link_type, original_length, data })) = reader.next_packet() {
        let mut packets = Packets::new();
        packets.push(Packet { time_ns, link_type, original_length, data, capture: 0, number: 0 });
        if sender.send((now_ns(), packets)).is_err() {
            return;
        }
    }
}
