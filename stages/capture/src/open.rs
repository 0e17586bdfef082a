//! Finds the files in folders that may be captures, and opens captures: files, named pipes and stdin. The
//! first bytes show whether and how they are compressed.

use std::fs::{self, File, FileType};
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::bufread::{DeflateDecoder, GzDecoder};
use liblzma::bufread::XzDecoder;
use liblzma::stream::Stream;
use lz4_flex::frame::FrameDecoder;
use sizeleak_platform::runtime::{FileProgress, Interrupt, Interruptible, open_stream};
use zstd::stream::raw::{self, DParameter, InBuffer, Operation, OutBuffer};

use crate::error::Damage;
use crate::reader::CaptureReader;
use crate::window::{ByteSource, PlainFile, WINDOW_BYTES};

#[derive(Debug, Default)]
pub struct FolderContent {
    /// Regular files, and links to such or to nothing, in order of their paths.
    pub files: Vec<PathBuf>,
    /// Named pipes, sockets and devices, and links to them: reading one may never end. In order of their paths.
    pub special: Vec<SpecialFile>,
    pub unreadable: Vec<(PathBuf, io::Error)>,
}

/// A file without content of its own.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpecialFile {
    pub path: PathBuf,
    /// What it is, for people.
    pub kind: &'static str,
}

/// All that is below a folder. Links to folders are not followed: they may form loops.
pub fn content_below(folder: &Path) -> FolderContent {
    let mut content = FolderContent::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if let Err(error) = content.add_entries(&folder, &mut folders) {
            content.unreadable.push((folder, error));
        }
    }
    content.files.sort();
    content.special.sort();
    content.unreadable.sort_by(|one, other| one.0.cmp(&other.0));
    content
}

impl FolderContent {
    fn add_entries(&mut self, folder: &Path, folders: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            // A link to nothing is a file that cannot be opened.
            let target =
                if kind.is_symlink() { fs::metadata(&path).ok().map(|target| target.file_type()) } else { Some(kind) };
            match target.and_then(special_kind) {
                Some(kind) => self.special.push(SpecialFile { path, kind }),
                None if target.is_some_and(|target| target.is_dir()) => {}
                None => self.files.push(path),
            }
        }
        Ok(())
    }
}

fn special_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else {
        None
    }
}

/// Whether the name of a file says that it is a capture: `.pcap` or `.pcapng`, also compressed or numbered
/// (`home.pcap.gz`, `home.pcap3`).
pub fn is_named_capture(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().to_ascii_lowercase().contains(".pcap"))
}

/// The most memory that decompression may take, as a power of two: what `xz -9` and `zstd --long` need.
const MAX_MEMORY_LOG: u32 = 27;

/// So many compressed bytes are read at once: a block of Zstandard.
const COMPRESSED_BYTES: usize = 1 << 17;

/// Whether a file is read while it is written, and can be read only once: stdin (`-`) or a named pipe.
pub(crate) fn is_stream(file: &Path) -> bool {
    file.as_os_str() == "-" || file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Whether a file in a folder is a capture, whole or damaged, and not one of the other files there.
pub fn is_capture(file: &Path) -> bool {
    let opened =
        File::open(file).map_err(Damage::Open).and_then(|opened| decompressed(Box::new(opened)).map_err(Damage::Open));
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
        Self::new(decompressed(watch(opened)).map_err(Damage::Open)?)
    }
}

/// Opens a capture. Returns its reader and, for a stream, a handle to ask whether input is waiting. Reading a stream
/// ends when `interrupt` is set.
pub(crate) fn open(
    file: &Path,
    interrupt: &Interrupt,
    progress: &FileProgress,
    read_bytes: usize,
) -> Result<(CaptureReader, Option<OwnedFd>), Damage> {
    if is_stream(file) {
        let input = open_stream(file).map_err(Damage::Open)?;
        let handle = input.as_fd().try_clone_to_owned().map_err(Damage::Open)?;
        let input = Box::new(Interruptible::new(progress.watch(input, 0), interrupt.clone()));
        return Ok((CaptureReader::new(decompressed(input).map_err(Damage::Open)?)?, Some(handle)));
    }
    Ok((CaptureReader::of(open_file(file, progress, 0)?, read_bytes)?, None))
}

pub(crate) fn open_file(file: &Path, progress: &FileProgress, offset: u64) -> Result<ByteSource, Damage> {
    let mut opened = File::open(file).map_err(|error| Damage::of_open(file, error))?;
    let metadata = opened.metadata().map_err(Damage::Open)?;
    if metadata.is_dir() {
        return Err(Damage::Folder);
    }
    let magic = read_magic(&mut opened).map_err(Damage::Open)?;
    opened.rewind().map_err(Damage::Open)?;
    if Compression::of(&magic) == Compression::None && !is_skippable(&magic) {
        return Ok(ByteSource::File(PlainFile::new(opened, metadata.len(), offset, progress)));
    }
    let mut input = decompressed(Box::new(progress.watch(opened, 0))).map_err(Damage::Open)?;
    io::copy(&mut input.by_ref().take(offset), &mut io::sink()).map_err(Damage::Open)?;
    Ok(ByteSource::Stream(input))
}

/// The stream itself, or its content if it is compressed. Several compressed members are one stream, and zeros behind one
/// are the padding of a tape's blocks, which is nothing.
pub fn decompressed(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = read_magic(&mut input)?;
    while is_skippable(&magic) {
        let mut whole = Cursor::new(magic).chain(input);
        skip_frame(&mut whole)?;
        (_, input) = whole.into_inner();
        magic = read_magic(&mut input)?;
    }
    let compression = Compression::of(&magic);
    let whole = Cursor::new(magic).chain(input);
    Ok(match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(Members::<GzipMember<_>>::new(buffered(whole))),
        Compression::Zstd => Box::new(Members::<ZstdMember<_>>::new(buffered(whole))),
        Compression::Xz => Box::new(Members::<XzDecoder<_>>::new(buffered(whole))),
        Compression::Lz4 => Box::new(Members::<FrameDecoder<_>>::new(buffered(whole))),
    })
}

fn read_magic(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut magic = Vec::new();
    input.take(6).read_to_end(&mut magic)?;
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

fn buffered<R: Read>(compressed: R) -> BufReader<R> {
    BufReader::with_capacity(COMPRESSED_BYTES, compressed)
}

/// A decoder of one member, as of gzip, Zstandard, XZ or LZ4, which leaves what follows it.
trait Member: Read + Sized {
    type Input: BufRead;

    /// `None` if no more than frames to be skipped follow.
    fn begin(input: Self::Input) -> io::Result<Option<Self>>;

    fn into_rest(self) -> io::Result<Self::Input>;

    /// How many bytes it has decoded, where a read that fails may have decoded some before.
    fn decoded_bytes(&self) -> u64 {
        0
    }
}

/// A member of gzip (RFC 1952). The decoder of flate2 for whole members does not tell what it decoded before it failed.
struct GzipMember<R> {
    body: DeflateDecoder<R>,
    crc: Crc,
}

impl<R: BufRead> Read for GzipMember<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.body.read(buffer)?;
        self.crc.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

impl<R: BufRead> Member for GzipMember<R> {
    type Input = R;

    fn begin(input: R) -> io::Result<Option<Self>> {
        let mut header = GzDecoder::new(input);
        if header.header().is_none() {
            // This says what is wrong with it.
            header.read_exact(&mut [0])?;
        }
        Ok(Some(Self { body: DeflateDecoder::new(header.into_inner()), crc: Crc::new() }))
    }

    fn into_rest(self) -> io::Result<R> {
        let mut rest = self.body.into_inner();
        let mut trailer = [0; 8];
        rest.read_exact(&mut trailer).map_err(|error| error.kind())?;
        let [sum, amount] = [self.crc.sum(), self.crc.amount()].map(u32::to_le_bytes);
        if [sum, amount].as_flattened() == trailer {
            Ok(rest)
        } else {
            let fault = "corrupt gzip stream does not have a matching checksum";
            Err(io::Error::new(ErrorKind::InvalidInput, fault))
        }
    }

    fn decoded_bytes(&self) -> u64 {
        self.body.total_out()
    }
}

/// Bytes of a block's header, and the fewest that show how long a frame's is (RFC 8878, section 3.1.1).
const ZSTD_BLOCK_HEADER: usize = 3;
const ZSTD_START: usize = 5;

/// A frame of Zstandard. The decoder gets no more than one block at a time: where it fails it does not tell what it
/// decoded of those before.
struct ZstdMember<R> {
    decoder: raw::Decoder<'static>,
    input: R,
    /// How many bytes it gets next: up to the end of a block or of a header. 0 at the end of the frame.
    due: usize,
    /// Whether it may hold decoded bytes for which there was no room.
    has_more: bool,
}

impl<R: BufRead> Read for ZstdMember<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.due > 0 {
            let available = if self.has_more { &[] } else { self.input.fill_buf()? };
            if available.is_empty() && !self.has_more {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "incomplete frame"));
            }
            let mut input = InBuffer::around(available.get(..self.due).unwrap_or(available));
            let mut output = OutBuffer::around(buffer);
            let wanted = self.decoder.run(&mut input, &mut output)?;
            let (taken, decoded) = (input.pos(), output.pos());
            self.input.consume(taken);
            self.has_more = wanted > 0 && decoded == buffer.len();
            // What it wants may hold the header of the next block.
            self.due = if wanted > ZSTD_BLOCK_HEADER { wanted - ZSTD_BLOCK_HEADER } else { wanted };
            if decoded > 0 {
                return Ok(decoded);
            }
        }
        Ok(0)
    }
}

impl<R: BufRead> Member for ZstdMember<R> {
    type Input = R;

    fn begin(input: R) -> io::Result<Option<Self>> {
        let mut decoder = raw::Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_MEMORY_LOG))?;
        Ok(Some(Self { decoder, input, due: ZSTD_START, has_more: false }))
    }

    fn into_rest(self) -> io::Result<R> {
        Ok(self.input)
    }
}

impl<R: BufRead> Member for XzDecoder<R> {
    type Input = R;

    fn begin(input: R) -> io::Result<Option<Self>> {
        Ok(Some(Self::new_stream(input, Stream::new_stream_decoder(1 << MAX_MEMORY_LOG, 0)?)))
    }

    fn into_rest(self) -> io::Result<R> {
        Ok(self.into_inner())
    }

    fn decoded_bytes(&self) -> u64 {
        self.total_out()
    }
}

/// `lz4_flex` refuses frames to be skipped, and takes an end of input between two blocks for the end of the frame.
impl<R: BufRead> Member for FrameDecoder<Chain<Cursor<[u8; 4]>, EndWatch<R>>> {
    type Input = R;

    fn begin(mut input: R) -> io::Result<Option<Self>> {
        loop {
            let mut magic = [0; 4];
            input.read_exact(&mut magic)?;
            if !is_skippable(&magic) {
                let input = EndWatch { input, is_at_end: false };
                return Ok(Some(Self::new(Cursor::new(magic).chain(input))));
            }
            skip_frame(&mut Cursor::new(magic).chain(&mut input))?;
            if !skip_zeros(&mut input)? {
                return Ok(None);
            }
        }
    }

    fn into_rest(self) -> io::Result<R> {
        let (_, EndWatch { input, is_at_end }) = self.into_inner().into_inner();
        if is_at_end { Err(io::Error::new(ErrorKind::UnexpectedEof, "the LZ4 frame is cut")) } else { Ok(input) }
    }
}

struct EndWatch<R> {
    input: R,
    is_at_end: bool,
}

impl<R: Read> Read for EndWatch<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.is_at_end |= count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

struct Members<M: Member> {
    /// What follows the last member, until the next one begins.
    rest: Option<M::Input>,
    member: Option<M>,
    /// What ended a read that had decoded bytes.
    failure: Option<io::Error>,
}

impl<M: Member> Members<M> {
    fn new(input: M::Input) -> Self {
        Self { rest: Some(input), member: None, failure: None }
    }
}

impl<M: Member> Read for Members<M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        loop {
            if let Some(member) = &mut self.member {
                let before = member.decoded_bytes();
                let count = match member.read(buffer) {
                    Err(failure) if member.decoded_bytes() > before => {
                        self.failure = Some(failure);
                        (member.decoded_bytes() - before) as usize
                    }
                    read => read?,
                };
                if count > 0 {
                    return Ok(count);
                }
                self.rest = self.member.take().map(M::into_rest).transpose()?;
            }
            let Some(rest) = &mut self.rest else { return Ok(0) };
            if !skip_zeros(rest)? {
                return Ok(0);
            }
            self.member = self.rest.take().map(M::begin).transpose()?.flatten();
        }
    }
}

/// Skips zeros; false at the end of the input.
fn skip_zeros(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().position(|byte| *byte != 0);
        let count = zeros.unwrap_or(bytes.len());
        input.consume(count);
        if zeros.is_some() {
            return Ok(true);
        }
    }
}

/// Whether these are the first bytes of a skippable frame, which Zstandard and LZ4 share.
fn is_skippable(magic: &[u8]) -> bool {
    matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

fn skip_frame(input: &mut impl Read) -> io::Result<()> {
    let mut header = [0; 8];
    input.read_exact(&mut header)?;
    let [.., l0, l1, l2, l3] = header;
    let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
    if io::copy(&mut input.take(length), &mut io::sink())? < length {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "a frame to be skipped is cut"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

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

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(stream: &[u8]) -> (Vec<u8>, Option<ErrorKind>) {
        let mut out = Vec::new();
        let error = Members::<FrameDecoder<_>>::new(stream).read_to_end(&mut out).err().map(|error| error.kind());
        (out, error)
    }

    #[test]
    fn several_frames_are_one_stream_without_skippable_ones() {
        let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"hello"].concat();
        let stream = [&frame(b"one")[..], &skipped, &skipped, &frame(b""), &frame(b"two"), &skipped].concat();
        assert_eq!(read(&stream), (b"onetwo".to_vec(), None));
    }

    #[test]
    fn a_cut_anywhere_is_an_error() {
        let whole = frame(&vec![7; 300_000]);
        for at in 5..whole.len() {
            assert!(read(&whole[..at]).1.is_some(), "{at}");
        }
        let skipped = [0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, b'h'];
        assert_eq!(read(&[&whole[..], &skipped].concat()).1, Some(ErrorKind::UnexpectedEof));
    }

    #[test]
    fn pipes_sockets_and_devices_are_apart_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("below")).unwrap();
        fs::write(path("below/b.pcap"), "").unwrap();
        fs::write(path("a.pcap"), "").unwrap();
        mknodat(CWD, path("pipe.pcap"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _listener = UnixListener::bind(path("socket")).unwrap();
        symlink("/dev/zero", path("zero.pcap")).unwrap();
        symlink("nowhere", path("lost")).unwrap();
        symlink(".", path("loop")).unwrap();
        let content = content_below(folder.path());
        assert_eq!(content.files, ["a.pcap", "below/b.pcap", "lost"].map(path));
        let special: Vec<_> = content.special.iter().map(|special| (special.path.clone(), special.kind)).collect();
        let expected = [("pipe.pcap", "a named pipe"), ("socket", "a socket"), ("zero.pcap", "a device")];
        assert_eq!(special, expected.map(|(name, kind)| (path(name), kind)));
        assert!(content.unreadable.is_empty());
        assert_eq!(content_below(&path("gone")).unreadable.len(), 1);
    }

    #[test]
    fn captures_are_recognised_by_name() {
        for (name, is_capture) in
            [("a.pcap", true), ("a.PCAPNG.gz", true), ("a.pcap07", true), ("pcap", false), ("a.txt", false)]
        {
            assert_eq!(is_named_capture(Path::new(name)), is_capture, "{name}");
        }
    }
}
