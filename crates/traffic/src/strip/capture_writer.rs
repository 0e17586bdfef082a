//! Writes packets as a capture: pcap with nanoseconds, or pcapng.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use sizeleak_frame::Packet;

/// The longest packet that other programs read, in bytes.
const SNAPLEN: u32 = 262_144;

/// The resolution of pcapng's times: 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureFormat {
    /// For packets of one link type.
    Pcap,
    /// For packets of any link types, each with an interface of its own.
    Pcapng,
}

pub struct CaptureWriter<W: Write>(State<W>);

enum State<W: Write> {
    /// Before the first packet, which says the link type.
    Empty(Option<(W, CaptureFormat)>),
    Pcap {
        writer: PcapWriter<W>,
        link_type: u16,
    },
    Pcapng {
        writer: PcapNgWriter<W>,
        link_types: Vec<u16>,
    },
}

impl<W: Write> CaptureWriter<W> {
    pub fn new(output: W, format: CaptureFormat) -> Self {
        Self(State::Empty(Some((output, format))))
    }

    pub fn write(&mut self, packet: Packet<'_>) -> io::Result<()> {
        self.begin(packet.link_type)?;
        let time = u64::try_from(packet.time_ns).map_err(|_| invalid("a packet is older than 1970"))?;
        let (timestamp, data) = (Duration::from_nanos(time), packet.data);
        let original_len = packet.original_length.max(data.len() as u32);
        match &mut self.0 {
            State::Empty(_) => {}
            State::Pcap { link_type, .. } if *link_type != packet.link_type => {
                return Err(invalid("the packets have several link types: name the output .pcapng"));
            }
            State::Pcap { writer, .. } => {
                writer.write_packet(&PcapPacket::new(timestamp, original_len, data)).map_err(io_error)?;
            }
            State::Pcapng { writer, link_types } => {
                let known = link_types.iter().position(|known| *known == packet.link_type);
                let interface = known.unwrap_or(link_types.len()) as u32;
                if known.is_none() {
                    link_types.push(packet.link_type);
                    writer.write_block(&interface_block(packet.link_type).into_block()).map_err(io_error)?;
                }
                let data = Cow::Borrowed(data);
                let block =
                    EnhancedPacketBlock { interface_id: interface, timestamp, original_len, data, options: Vec::new() };
                writer.write_block(&block.into_block()).map_err(io_error)?;
            }
        }
        Ok(())
    }

    /// Ends the capture, which is one even without packets.
    pub fn finish(mut self) -> io::Result<W> {
        const ETHERNET: u16 = 1;
        self.begin(ETHERNET)?;
        let mut output = match self.0 {
            State::Pcap { writer, .. } => writer.into_writer(),
            State::Pcapng { writer, .. } => writer.into_inner(),
            State::Empty(output) => output.ok_or_else(|| invalid("the capture was not begun"))?.0,
        };
        output.flush()?;
        Ok(output)
    }

    fn begin(&mut self, link_type: u16) -> io::Result<()> {
        let State::Empty(output) = &mut self.0 else { return Ok(()) };
        let Some((output, format)) = output.take() else { return Ok(()) };
        self.0 = match format {
            CaptureFormat::Pcap => {
                let header = PcapHeader {
                    endianness: Endianness::Little,
                    ts_resolution: TsResolution::NanoSecond,
                    datalink: DataLink::from(u32::from(link_type)),
                    snaplen: SNAPLEN,
                    ..PcapHeader::default()
                };
                State::Pcap { writer: PcapWriter::with_header(output, header).map_err(io_error)?, link_type }
            }
            CaptureFormat::Pcapng => {
                let writer = PcapNgWriter::with_endianness(output, Endianness::Little).map_err(io_error)?;
                State::Pcapng { writer, link_types: Vec::new() }
            }
        };
        Ok(())
    }
}

fn interface_block(link_type: u16) -> InterfaceDescriptionBlock<'static> {
    let options = vec![InterfaceDescriptionOption::IfTsResol(NANOSECONDS)];
    InterfaceDescriptionBlock { linktype: DataLink::from(u32::from(link_type)), snaplen: SNAPLEN, options }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidInput, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_capture::CaptureReader;

    use super::*;

    /// A nanosecond, a link type, and the bytes.
    type Written = (i64, u16, Vec<u8>);

    fn written(format: CaptureFormat, packets: &[Written]) -> io::Result<Vec<u8>> {
        let mut writer = CaptureWriter::new(Vec::new(), format);
        for (time_ns, link_type, data) in packets {
            let (time_ns, link_type) = (*time_ns, *link_type);
            writer.write(Packet { time_ns, link_type, original_length: 99, data, capture: 0, number: 1 })?;
        }
        writer.finish()
    }

    fn read(bytes: Vec<u8>) -> Vec<Written> {
        let mut reader = CaptureReader::new(Box::new(io::Cursor::new(bytes))).unwrap();
        let mut packets = Vec::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            assert_eq!(packet.original_length, 99);
            packets.push((packet.time_ns, packet.link_type, packet.data.to_vec()));
        }
        packets
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        let packets = [(1_767_600_000_123_456_789, 1, vec![1, 2, 3]), (0, 1, vec![0]), (7, 1, vec![9; 60])];
        for format in [CaptureFormat::Pcap, CaptureFormat::Pcapng] {
            assert_eq!(read(written(format, &packets).unwrap()), packets, "{format:?}");
            assert_eq!(read(written(format, &[]).unwrap()), []);
        }
    }

    #[test]
    fn pcapng_holds_several_link_types_and_pcap_refuses_them() {
        let packets = [(1, 1, vec![1]), (2, 113, vec![2]), (3, 1, vec![3])];
        assert_eq!(read(written(CaptureFormat::Pcapng, &packets).unwrap()), packets);
        let error = written(CaptureFormat::Pcap, &packets).unwrap_err().to_string();
        assert!(error.contains("name the output .pcapng"), "{error}");
        assert!(written(CaptureFormat::Pcap, &[(-1, 1, vec![1])]).is_err());
    }
}
