//! Opens captures: files, pipes or stdin, decompressed where their first bytes say so.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use sizeleak_runtime::{FileProgress, Interrupt, Interruptible};

use crate::ahead::ReadAhead;
use crate::error::{CaptureError, Damage};
use crate::lz4::{Lz4Frames, is_skippable, skip_frame};
use crate::plain::PlainFile;
use crate::reader::{CaptureReader, Place};
use crate::window::Origin;

/// A compressed capture may ask for this much memory to decompress it, and no more: what `xz -9` and `zstd --long` need.
const MOST_MEMORY_LOG: u32 = 27;

/// A capture that was opened.
pub(crate) struct Opened {
    pub(crate) reader: CaptureReader,
    /// A handle to ask whether more is there, if one may have to wait for that.
    pub(crate) stream: Option<OwnedFd>,
}

/// Whether a file is something that is written while it is read, and can be read once: stdin (`-`), a named pipe.
pub(crate) fn is_stream(file: &Path) -> bool {
    file.as_os_str() == "-" || file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Where a compressed file is decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decompression {
    /// While it is read.
    Here,
    /// Ahead of that, on a thread of its own.
    PrefetchedCapture,
}

/// Opens a capture for reading. Reading a stream ends when `interrupt` is set. `furthest` is told how far the file was read.
pub(crate) fn open(
    file: &Path,
    interrupt: &Interrupt,
    furthest: &FileProgress,
    decompression: Decompression,
) -> Result<Opened, CaptureError> {
    let opened = || {
        if !is_stream(file) {
            let (input, plain_length) = regular(file)?;
            let input = if let Some(length) = plain_length {
                Origin::File(PlainFile::new(input, length, furthest))
            } else {
                let input = decompressed(Box::new(furthest.watch(input, 0)))?;
                let is_beside = decompression == Decompression::PrefetchedCapture;
                Origin::Stream(if is_beside { ReadAhead::start(input) } else { input })
            };
            return Ok(Opened { reader: CaptureReader::of(input)?, stream: None });
        }
        let input = if file.as_os_str() == "-" { stdin() } else { pipe(file) }.map_err(Damage::Open)?;
        let handle = input.as_fd().try_clone_to_owned().map_err(Damage::Open)?;
        let input = Box::new(Interruptible::new(furthest.watch(input, 0), interrupt.clone()));
        Ok(Opened { reader: CaptureReader::new(decompressed(input)?)?, stream: Some(handle) })
    };
    opened().map_err(|damage| CaptureError { file: file.to_owned(), damage })
}

/// Opens a file again where its reading was left off.
pub(crate) fn reopen(file: &Path, furthest: &FileProgress, place: Place) -> Result<CaptureReader, CaptureError> {
    let opened = || {
        let (input, plain_length) = regular(file)?;
        if let Some(length) = plain_length {
            return Ok(CaptureReader::resume(Origin::File(PlainFile::new(input, length, furthest)), place));
        }
        let mut input = decompressed(Box::new(furthest.watch(input, 0)))?;
        io::copy(&mut input.by_ref().take(place.offset()), &mut io::sink()).map_err(Damage::Open)?;
        Ok(CaptureReader::resume(Origin::Stream(input), place))
    };
    opened().map_err(|damage| CaptureError { file: file.to_owned(), damage })
}

/// Opens a file, and tells its length if the capture lies in it as it is.
fn regular(file: &Path) -> Result<(File, Option<u64>), Damage> {
    let mut opened = File::open(file).map_err(Damage::Open)?;
    let metadata = opened.metadata().map_err(Damage::Open)?;
    if metadata.is_dir() {
        return Err(Damage::Folder);
    }
    let magic = beginning(&mut opened)?;
    opened.rewind().map_err(Damage::Open)?;
    let is_plain = Compression::of(&magic) == Compression::None && !is_skippable(&magic);
    Ok((opened, is_plain.then_some(metadata.len())))
}

fn stdin() -> io::Result<File> {
    // Not through the standard library's lock, which would be held for as long as anything waits for input.
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Opens a named pipe without waiting for its writer, which would keep the user from stopping.
fn pipe(file: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(file)?;
    fcntl_setfl(&opened, fcntl_getfl(&opened)? - OFlags::NONBLOCK)?;
    Ok(opened)
}

/// The stream itself, or what is compressed in it. Streams of several compressed members are one after the other.
fn decompressed(mut input: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, Damage> {
    let mut magic = beginning(&mut input)?;
    while is_skippable(&magic) {
        let mut whole = Cursor::new(magic).chain(input);
        skip_frame(&mut whole).map_err(Damage::Open)?;
        (_, input) = whole.into_inner();
        magic = beginning(&mut input)?;
    }
    let compression = Compression::of(&magic);
    let whole = Cursor::new(magic).chain(input);
    Ok(match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(MultiGzDecoder::new(whole)),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::new(whole).map_err(Damage::Open)?;
            decoder.window_log_max(MOST_MEMORY_LOG).map_err(Damage::Open)?;
            Box::new(decoder)
        }
        Compression::Xz => {
            let stream = Stream::new_stream_decoder(1 << MOST_MEMORY_LOG, CONCATENATED);
            let stream = stream.map_err(|error| Damage::Open(error.into()))?;
            Box::new(XzDecoder::new_stream(whole, stream))
        }
        Compression::Lz4 => Box::new(Lz4Frames::new(whole)),
    })
}

/// The first bytes of a stream, as many as tell what it is.
fn beginning(input: &mut impl Read) -> Result<Vec<u8>, Damage> {
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
    /// What the first bytes of a stream say.
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
