//! The least work of any reader of captures: go from packet to packet and compare addresses.

use std::io::{self, Read};
use std::net::Ipv4Addr;

use prefetch_index::prefetch_index;

/// Files are read in blocks of this many bytes.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;
const FILE_HEADER_BYTES: usize = 24;
const PACKET_HEADER_BYTES: usize = 16;

/// Offsets of source and destination in IPv4 right behind Ethernet.
const ADDRESSES: std::ops::Range<usize> = 26..34;

/// The counts of a capture.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) packets: u64,
    pub(crate) of_address: u64,
}

/// Walks over a capture that `archive write` made, and counts its packets and those of one address.
pub(crate) fn walk(capture: impl Read, address: Ipv4Addr) -> io::Result<Walked> {
    let (mut walked, address) = (Walked::default(), address.octets());
    visit_packets(capture, |_, data| {
        walked.packets += 1;
        if let Some(ends) = data.get(ADDRESSES) {
            walked.of_address += u64::from(ends[..4] == address || ends[4..] == address);
        }
        Ok(())
    })?;
    Ok(walked)
}

/// Visits the packets of a capture, each with its header.
pub(crate) fn visit_packets(
    mut capture: impl Read,
    mut packet: impl FnMut(&[u8; PACKET_HEADER_BYTES], &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    capture.read_exact(&mut [0; FILE_HEADER_BYTES])?;
    let (mut block, mut there) = (vec![0; 2 * BLOCK_BYTES], 0);
    loop {
        match capture.read(&mut block[there..there + BLOCK_BYTES])? {
            0 => return Ok(()),
            count => there += count,
        }
        let mut bytes = &block[..there];
        while let Some((header, behind)) = bytes.split_first_chunk::<PACKET_HEADER_BYTES>()
            && let [_, _, _, _, _, _, _, _, a, b, c, d, ..] = *header
            && let Some((data, behind)) = behind.split_at_checked(u32::from_le_bytes([a, b, c, d]) as usize)
        {
            prefetch_index(bytes, 512);
            prefetch_index(bytes, 576);
            packet(header, data)?;
            bytes = behind;
        }
        let left = bytes.len();
        block.copy_within(there - left..there, 0);
        there = left;
    }
}
