//! Opens captures: files or stdin, decompressed where their first bytes say so.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use lz4_flex::frame::FrameDecoder;
use sizeleak_stage::{Interrupt, Interruptible};

use crate::error::{CaptureError, Damage};
use crate::reader::CaptureReader;

/// Opens a capture for reading. Reading stdin (`-`) ends when `interrupt` is set.
pub(crate) fn open(file: &Path, interrupt: &Interrupt) -> Result<CaptureReader, CaptureError> {
    let input = if file.as_os_str() == "-" { stdin(interrupt) } else { plain(file) };
    let reader = input.and_then(|input| CaptureReader::new(decompressed(input)?));
    reader.map_err(|damage| CaptureError { file: file.to_owned(), damage })
}

fn plain(file: &Path) -> Result<Box<dyn Read + Send>, Damage> {
    let opened = File::open(file).map_err(Damage::Open)?;
    if opened.metadata().map_err(Damage::Open)?.is_dir() {
        return Err(Damage::Folder);
    }
    Ok(Box::new(opened))
}

fn stdin(interrupt: &Interrupt) -> Result<Box<dyn Read + Send>, Damage> {
    // Not through the standard library's lock, which would be held for as long as anything waits for input.
    let stdin = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(Damage::Open)?);
    Ok(Box::new(Interruptible::new(stdin, interrupt.clone())))
}

/// The stream itself, or what is compressed in it. Streams of several compressed members are one after the other.
fn decompressed(mut input: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, Damage> {
    let mut magic = Vec::new();
    input.by_ref().take(6).read_to_end(&mut magic).map_err(Damage::Open)?;
    let compression = Compression::of(&magic);
    let whole = Cursor::new(magic).chain(input);
    Ok(match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(MultiGzDecoder::new(whole)),
        Compression::Zstd => Box::new(zstd::Decoder::new(whole).map_err(Damage::Open)?),
        Compression::Xz => Box::new(XzDecoder::new_multi_decoder(whole)),
        Compression::Lz4 => Box::new(Lz4Members { decoder: FrameDecoder::new(whole) }),
    })
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

/// LZ4 frames one after another. The decoder ends at the end of each, and goes on when read again.
struct Lz4Members<R: Read> {
    decoder: FrameDecoder<R>,
}

impl<R: Read> Read for Lz4Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.decoder.read(buffer)? {
            0 if !buffer.is_empty() => self.decoder.read(buffer),
            count => Ok(count),
        }
    }
}
