//! The stage for live capture: an interface, through libpcap, instead of files.

use pcap::{Active, Error, Precision};
use sizeleak_frame::{Packet, what};
use sizeleak_platform::runtime::{Interrupt, Source, SourceEmit, StageError, becomes_ready};
use thiserror::Error as ThisError;

use crate::notice::{NAME, notice};
use crate::packet_batcher::{PacketBatcher, Selection};

/// The default snaplen in bytes, as tcpdump's: whole packets.
const DEFAULT_SNAPLEN: u32 = 262_144;

/// Bytes that the kernel buffers.
const KERNEL_BUFFER_BYTES: i32 = 8 << 20;

/// Captures the packets of an interface and emits them as they arrive.
pub struct LiveCapture {
    interface: String,
    capture: pcap::Capture<Active>,
    link_type: u16,
    selection: Selection,
    bytes: u64,
    packets: u64,
    counters: Vec<(&'static str, u64)>,
}

/// Why packets of an interface cannot be captured.
#[derive(Debug, ThisError)]
pub enum LiveError {
    /// The interface cannot be opened.
    #[error("{interface}: {source}")]
    Open {
        /// The interface's name.
        interface: String,
        /// libpcap's reason.
        source: Error,
    },
    /// The filter is invalid.
    #[error("the filter `{filter}`: {source}")]
    Filter {
        /// The filter.
        filter: String,
        /// libpcap's reason.
        source: Error,
    },
    /// Capturing stopped after packets were captured.
    #[error("{interface}: {source}; what was captured before is processed")]
    Read {
        /// The interface's name.
        interface: String,
        /// libpcap's reason.
        source: Error,
    },
}

impl LiveCapture {
    /// Opens an interface to capture at most `snaplen` bytes of each packet that passes `filter`, a tcpdump expression.
    ///
    /// # Errors
    /// [`LiveError`]: no such interface, no permission, an invalid filter.
    pub fn open(interface: &str, snaplen: Option<u32>, filter: Option<&str>) -> Result<Self, LiveError> {
        let open = || {
            let snaplen = snaplen.unwrap_or(DEFAULT_SNAPLEN);
            pcap::Capture::from_device(interface)?
                .promisc(true)
                // Deliver packets at once, not when a buffer is full.
                .immediate_mode(true)
                .precision(Precision::Nano)
                .buffer_size(KERNEL_BUFFER_BYTES)
                .snaplen(i32::try_from(snaplen).unwrap_or(i32::MAX))
                .open()?
                .setnonblock()
        };
        let mut capture = open().map_err(|source| LiveError::Open { interface: interface.to_owned(), source })?;
        if let Some(filter) = filter {
            let checked = capture.filter(filter, true);
            checked.map_err(|source| LiveError::Filter { filter: filter.to_owned(), source })?;
        }
        let link_type = u16::try_from(linktype_value(capture.get_datalink().0)).unwrap_or(u16::MAX);
        Ok(Self {
            interface: interface.to_owned(),
            capture,
            link_type,
            selection: Selection::All,
            bytes: 0,
            packets: 0,
            counters: Vec::new(),
        })
    }

    /// Passes on this selection of the packets.
    #[must_use]
    pub(crate) fn selecting(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Takes the next packet into the batch; false if none is waiting.
    fn take_packet(&mut self, batcher: &mut PacketBatcher) -> Result<bool, LiveError> {
        let packet = match self.capture.next_packet() {
            Ok(packet) => packet,
            Err(Error::TimeoutExpired) => return Ok(false),
            Err(source) => return Err(LiveError::Read { interface: self.interface.clone(), source }),
        };
        self.packets += 1;
        self.bytes += packet.data.len() as u64;
        // With nanosecond precision, `tv_usec` holds nanoseconds.
        let time_ns = packet.header.ts.tv_sec.saturating_mul(1_000_000_000).saturating_add(packet.header.ts.tv_usec);
        batcher.push(Packet {
            time_ns,
            link_type: self.link_type,
            original_length: packet.header.len,
            data: packet.data,
            capture: 0,
            number: self.packets,
        });
        Ok(true)
    }

    /// Asks the kernel how many packets it and the interface have dropped, and reports them.
    fn report_drops(&mut self, last_ns: Option<i64>, out: &mut dyn SourceEmit) -> Result<[u64; 2], StageError> {
        let Ok(stat) = self.capture.stats() else { return Ok([0; 2]) };
        let [kernel, interface] = [stat.dropped, stat.if_dropped].map(u64::from);
        let dropped = kernel + interface;
        if dropped > 0 {
            let detail = format!(
                "{}: {dropped} packets were dropped ({kernel} by the kernel, {interface} by the interface): they came \
                 faster than they were read",
                self.interface
            );
            out.emit(notice(what::GAP, last_ns, &detail).into())?;
        }
        Ok([kernel, interface])
    }
}

/// The LINKTYPE_ value of a libpcap link type: they differ only for raw IP (on Linux 12 instead of 101).
fn linktype_value(number: i32) -> i32 {
    if number == pcap::Linktype::RAW.0 || number == 12 { 101 } else { number }
}

impl Source for LiveCapture {
    const NAME: &'static str = NAME;

    fn run(&mut self, out: &mut dyn SourceEmit, interrupt: &Interrupt) -> Result<(), StageError> {
        let mut batcher = PacketBatcher::copying_data(self.selection.clone());
        let (mut failure, progress, mut reported) = (None, out.progress(), 0);
        while !interrupt.is_set() && failure.is_none() {
            match self.take_packet(&mut batcher) {
                Ok(true) if !batcher.is_due() => {}
                Ok(is_taken) => {
                    progress.add(self.bytes - std::mem::replace(&mut reported, self.bytes));
                    batcher.send(out)?;
                    if !is_taken {
                        out.flush()?;
                        becomes_ready(&self.capture);
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        batcher.send(out)?;
        batcher.report_absence(out)?;
        let [kernel_drops, interface_drops] = self.report_drops(batcher.last_ns(), out)?;
        self.counters = vec![
            ("snaplen_cut", batcher.counts.snaplen_cut),
            ("left_out", batcher.left_out()),
            ("kernel_drops", kernel_drops),
            ("interface_drops", interface_drops),
        ];
        failure.map_or(Ok(()), |error| Err(StageError::failed(error)))
    }

    fn bytes_in(&self) -> u64 {
        self.bytes
    }

    fn frames_in(&self) -> u64 {
        self.packets
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counters.clone()
    }
}

#[cfg(test)]
mod tests;
