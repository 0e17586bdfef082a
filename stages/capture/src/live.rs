//! The stage, reading an interface through libpcap instead of files.

use pcap::{Active, Error, Precision};
use sizeleak_frame::{Packet, what};
use sizeleak_runtime::{Interrupt, Progress, Source, SourceEmit, StageError, becomes_ready};
use thiserror::Error as ThisError;

use crate::capture::{notice, send};
use crate::packet_batcher::{Keeping, PacketBatcher, Selection};

/// Bytes captured of a packet unless asked otherwise: all of it, as tcpdump has it.
const WHOLE_PACKET: u32 = 262_144;

/// Bytes the kernel may hold for us while we are busy.
const KERNEL_BUFFER: i32 = 8 << 20;

/// Captures the packets of an interface and emits them as they come.
pub struct LiveCapture {
    interface: String,
    capture: pcap::Capture<Active>,
    link_type: u16,
    selection: Selection,
    last_time_ns: Option<i64>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    snaplen_cut: u64,
    left_out: u64,
    kernel_drops: u64,
    interface_drops: u64,
}

/// Why an interface gives no packets.
#[derive(Debug, ThisError)]
pub enum LiveError {
    /// It cannot be opened.
    #[error("{interface}: {source}")]
    Open {
        /// Its name.
        interface: String,
        /// libpcap's reason.
        source: Error,
    },
    /// The filter cannot be read.
    #[error("the filter `{filter}`: {source}")]
    Filter {
        /// What was given.
        filter: String,
        /// libpcap's reason.
        source: Error,
    },
    /// It gave packets, and gives no more.
    #[error("{interface}: {source}; what was captured before is processed")]
    Read {
        /// Its name.
        interface: String,
        /// libpcap's reason.
        source: Error,
    },
}

impl LiveCapture {
    /// Opens an interface. Of each packet `snaplen` bytes are kept; `filter` is in tcpdump's language.
    ///
    /// # Errors
    /// [`LiveError`]: no such interface, not the right to capture there, a filter that cannot be read.
    pub fn open(interface: &str, snaplen: Option<u32>, filter: Option<&str>) -> Result<Self, LiveError> {
        let open = || {
            let snaplen = snaplen.unwrap_or(WHOLE_PACKET);
            pcap::Capture::from_device(interface)?
                .promisc(true)
                // Packets are to be had at once, not when a buffer is full.
                .immediate_mode(true)
                .precision(Precision::Nano)
                .buffer_size(KERNEL_BUFFER)
                .snaplen(i32::try_from(snaplen).unwrap_or(i32::MAX))
                .open()?
                .setnonblock()
        };
        let mut capture = open().map_err(|source| LiveError::Open { interface: interface.to_owned(), source })?;
        if let Some(filter) = filter {
            let checked = capture.filter(filter, true);
            checked.map_err(|source| LiveError::Filter { filter: filter.to_owned(), source })?;
        }
        // The number that libpcap calls a link type is one of the registry, for all links that are read.
        let link_type = u16::try_from(registered(capture.get_datalink().0)).unwrap_or(u16::MAX);
        Ok(Self {
            interface: interface.to_owned(),
            capture,
            link_type,
            selection: Selection::All,
            last_time_ns: None,
            counts: Counts::default(),
        })
    }

    /// Hands on this selection of its packets.
    #[must_use]
    pub(crate) fn selecting(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Takes the next packet, if one is there, into the batch.
    fn take(&mut self, filling: &mut PacketBatcher) -> Result<bool, LiveError> {
        let packet = match self.capture.next_packet() {
            Ok(packet) => packet,
            Err(Error::TimeoutExpired) => return Ok(false),
            Err(source) => return Err(LiveError::Read { interface: self.interface.clone(), source }),
        };
        self.counts.packets += 1;
        self.counts.bytes += packet.data.len() as u64;
        // `tv_usec` holds nanoseconds, as was asked for.
        let time_ns = packet.header.ts.tv_sec.saturating_mul(1_000_000_000).saturating_add(packet.header.ts.tv_usec);
        self.last_time_ns = Some(time_ns);
        filling.take_copy(Packet {
            time_ns,
            link_type: self.link_type,
            original_length: packet.header.len,
            data: packet.data,
            capture: 0,
            number: self.counts.packets,
        });
        Ok(true)
    }

    /// Tells how many bytes were captured since those that were told.
    fn tell_bytes(&self, progress: &Progress, told: &mut u64) {
        progress.add(self.counts.bytes - std::mem::replace(told, self.counts.bytes));
    }

    /// Asks the kernel what it could not hand over, and tells it.
    fn tell_drops(&mut self, out: &mut dyn SourceEmit) -> Result<(), StageError> {
        let Ok(stat) = self.capture.stats() else { return Ok(()) };
        (self.counts.kernel_drops, self.counts.interface_drops) = (stat.dropped.into(), stat.if_dropped.into());
        let dropped = self.counts.kernel_drops + self.counts.interface_drops;
        if dropped > 0 {
            let detail = format!(
                "{}: {dropped} packets were dropped ({} by the kernel, {} by the interface): they came faster than they \
                 were read",
                self.interface, self.counts.kernel_drops, self.counts.interface_drops
            );
            out.emit(notice(what::GAP, self.last_time_ns, &detail).into())?;
        }
        Ok(())
    }
}

/// Raw IP has another number in libpcap (on Linux 12) than in the registry (101); all others that are read are the same.
fn registered(number: i32) -> i32 {
    if number == pcap::Linktype::RAW.0 || number == 12 { 101 } else { number }
}

impl Source for LiveCapture {
    const NAME: &'static str = "capture";

    fn run(&mut self, out: &mut dyn SourceEmit, interrupt: &Interrupt) -> Result<(), StageError> {
        let mut filling = PacketBatcher::new(self.selection.clone(), Keeping::Copied);
        let (mut failure, progress, mut told) = (None, out.progress(), 0);
        while !interrupt.is_set() && failure.is_none() {
            match self.take(&mut filling) {
                Ok(true) if filling.is_due() => {
                    self.tell_bytes(&progress, &mut told);
                    send(&mut filling, out)?;
                }
                Ok(true) => {}
                Ok(false) => {
                    self.tell_bytes(&progress, &mut told);
                    send(&mut filling, out)?;
                    out.flush()?;
                    becomes_ready(&self.capture);
                }
                Err(error) => failure = Some(error),
            }
        }
        send(&mut filling, out)?;
        (self.counts.snaplen_cut, self.counts.left_out) = (filling.counts.snaplen_cut, filling.counts.left_out);
        filling.tell_absence(out)?;
        self.tell_drops(out)?;
        failure.map_or(Ok(()), |error| Err(StageError::failed(error)))
    }

    fn bytes_in(&self) -> u64 {
        self.counts.bytes
    }

    fn frames_in(&self) -> u64 {
        self.counts.packets
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("snaplen_cut", self.counts.snaplen_cut),
            ("left_out", self.counts.left_out),
            ("kernel_drops", self.counts.kernel_drops),
            ("interface_drops", self.counts.interface_drops),
        ]
    }
}
