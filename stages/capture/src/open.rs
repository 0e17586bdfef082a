//! Opens captures: files, named pipes and stdin. The first bytes show whether and how they are compressed.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use sizeleak_platform::runtime::{FileProgress, Interrupt, Interruptible, open_stream};

use crate::error::Damage;
use crate::folder::is_named_capture;
use crate::lz4::{Lz4Frames, is_skippable, skip_frame};
use crate::read_ahead::ReadAhead;
use crate::reader::CaptureReader;
use crate::window::{ByteSource, PlainFile, WINDOW_BYTES};

/// The most memory that decompression may take, as a power of two: what `xz -9` and `zstd --long` need.
const MAX_MEMORY_LOG: u32 = 27;

/// Whether a file is read while it is written, and can be read only once: stdin (`-`) or a named pipe.
pub(crate) fn is_stream(file: &Path) -> bool {
    file.as_os_str() == "-" || file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Whether a file in a folder is a capture, whole or damaged, and not one of the other files there.
pub fn is_capture(file: &Path) -> bool {
    let opened = File::open(file).map_err(Damage::Open).and_then(|opened| decompress(Box::new(opened)));
    match opened.and_then(CaptureReader::new) {
        Err(Damage::Open(_)) => file.exists(),
        Err(Damage::NotCapture(_) | Damage::StandIn(_) | Damage::Empty) => is_named_capture(file),
        _ => true,
    }
}

impl CaptureReader {
    /// Opens a file, compressed or not, and reads the header of the capture in it.
    pub fn open(file: &Path) -> Result<Self, Damage> {
        Self::of(open_file(file, &FileProgress::default(), 0)?, WINDOW_BYTES)
    }

    /// As [`Self::open`], reading what `watch` makes of the file: a reader of the same bytes that may look at them, as they
    /// are on disk.
    pub fn open_watched(file: &Path, watch: impl FnOnce(File) -> Box<dyn Read + Send>) -> Result<Self, Damage> {
        let opened = File::open(file).map_err(|error| Damage::of_open(file, error))?;
        if opened.metadata().map_err(Damage::Open)?.is_dir() {
            return Err(Damage::Folder);
        }
        Self::new(decompress(watch(opened))?)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decompression {
    Inline,
    Threaded,
}

/// Opens a capture. Returns its reader and, for a stream, a handle to ask whether input is waiting. Reading a stream
/// ends when `interrupt` is set.
pub(crate) fn open(
    file: &Path,
    interrupt: &Interrupt,
    progress: &FileProgress,
    decompression: Decompression,
    read_bytes: usize,
) -> Result<(CaptureReader, Option<OwnedFd>), Damage> {
    if is_stream(file) {
        let input = open_stream(file).map_err(Damage::Open)?;
        let handle = input.as_fd().try_clone_to_owned().map_err(Damage::Open)?;
        let input = Box::new(Interruptible::new(progress.watch(input, 0), interrupt.clone()));
        return Ok((CaptureReader::new(decompress(input)?)?, Some(handle)));
    }
    let source = match open_file(file, progress, 0)? {
        ByteSource::Stream(input) if decompression == Decompression::Threaded => {
            ByteSource::Stream(ReadAhead::start(input))
        }
        source => source,
    };
    Ok((CaptureReader::of(source, read_bytes)?, None))
}

pub(crate) fn open_file(file: &Path, progress: &FileProgress, offset: u64) -> Result<ByteSource, Damage> {
    let mut opened = File::open(file).map_err(|error| Damage::of_open(file, error))?;
    let metadata = opened.metadata().map_err(Damage::Open)?;
    if metadata.is_dir() {
        return Err(Damage::Folder);
    }
    let magic = read_magic(&mut opened)?;
    opened.rewind().map_err(Damage::Open)?;
    if Compression::of(&magic) == Compression::None && !is_skippable(&magic) {
        return Ok(ByteSource::File(PlainFile::new(opened, metadata.len(), offset, progress)));
    }
    let mut input = decompress(Box::new(progress.watch(opened, 0)))?;
    io::copy(&mut input.by_ref().take(offset), &mut io::sink()).map_err(Damage::Open)?;
    Ok(ByteSource::Stream(input))
}

/// The stream itself, or its content if it is compressed. Several compressed members are one stream.
fn decompress(mut input: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, Damage> {
    let mut magic = read_magic(&mut input)?;
    while is_skippable(&magic) {
        let mut whole = Cursor::new(magic).chain(input);
        skip_frame(&mut whole).map_err(Damage::Open)?;
        (_, input) = whole.into_inner();
        magic = read_magic(&mut input)?;
    }
    let compression = Compression::of(&magic);
    let whole = Cursor::new(magic).chain(input);
    Ok(match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(MultiGzDecoder::new(whole)),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::new(whole).map_err(Damage::Open)?;
            decoder.window_log_max(MAX_MEMORY_LOG).map_err(Damage::Open)?;
            Box::new(decoder)
        }
        Compression::Xz => {
            let stream = Stream::new_stream_decoder(1 << MAX_MEMORY_LOG, CONCATENATED);
            let stream = stream.map_err(|error| Damage::Open(error.into()))?;
            Box::new(XzDecoder::new_stream(whole, stream))
        }
        Compression::Lz4 => Box::new(Lz4Frames::new(whole)),
    })
}

fn read_magic(input: &mut impl Read) -> Result<Vec<u8>, Damage> {
    let mut magic = Vec::new();
    input.take(6).read_to_end(&mut magic).map_err(Damage::Open)?;
    Ok(magic)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
    Xz,
    Lz4,
}

impl Compression {
    fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_captures_by_content_or_if_they_are_damaged_ones() {
        let folder = tempfile::tempdir().unwrap();
        let header = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0";
        let packed = zstd::encode_all(&header[..], 1).unwrap();
        for (name, bytes, expected) in [
            ("monday", &header[..], true),
            ("packed.bin", &packed, true),
            ("cut", &header[..9], true),
            ("labels.csv", b"time,on\n1,1\n", false),
            ("empty", b"", false),
            ("text.pcap", b"time,on\n1,1\n", true),
            ("empty.pcap.gz", b"", true),
        ] {
            let file = folder.path().join(name);
            fs::write(&file, bytes).unwrap();
            assert_eq!(is_capture(&file), expected, "{name}");
        }
        let link = folder.path().join("lost.pcap");
        symlink("nowhere", &link).unwrap();
        assert!(!is_capture(&link));
    }
}
