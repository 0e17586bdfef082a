//! LZ4 streams: several frames one after another, skippable ones among them.

use std::io::{self, ErrorKind, Read};

use lz4_flex::frame::FrameDecoder;

/// LZ4 frames one after another, as one stream.
///
/// `lz4_flex` decodes one frame, refuses skippable ones, and takes an end of input between two blocks for the end of
/// the frame; this type handles all three.
pub(crate) struct Lz4Frames<R: Read> {
    decoder: Option<FrameDecoder<PeekedInput<R>>>,
}

impl<R: Read> Lz4Frames<R> {
    pub(crate) fn new(input: R) -> Self {
        let source = PeekedInput { lookahead: io::Cursor::new(Vec::new()), input, ended: false };
        Self { decoder: Some(FrameDecoder::new(source)) }
    }

    /// Continues with the next frame; false at the end of the stream.
    fn next_frame(&mut self) -> io::Result<bool> {
        let Some(decoder) = self.decoder.take() else { return Ok(false) };
        let mut source = decoder.into_inner();
        if source.ended {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "the LZ4 frame is cut"));
        }
        loop {
            let mut magic = Vec::new();
            source.by_ref().take(4).read_to_end(&mut magic)?;
            if magic.is_empty() {
                return Ok(false);
            }
            source.ended = false;
            source.lookahead = io::Cursor::new(magic);
            if !is_skippable(source.lookahead.get_ref()) {
                self.decoder = Some(FrameDecoder::new(source));
                return Ok(true);
            }
            skip_frame(&mut source)?;
        }
    }
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(decoder) = &mut self.decoder {
            let count = decoder.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            if !self.next_frame()? {
                break;
            }
        }
        Ok(0)
    }
}

/// Whether these are the first bytes of a skippable frame, which Zstandard and LZ4 share.
pub(crate) fn is_skippable(magic: &[u8]) -> bool {
    matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

pub(crate) fn skip_frame(input: &mut impl Read) -> io::Result<()> {
    let mut header = [0; 8];
    input.read_exact(&mut header)?;
    let [.., l0, l1, l2, l3] = header;
    let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
    if io::copy(&mut input.take(length), &mut io::sink())? < length {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "a frame to be skipped is cut"));
    }
    Ok(())
}

/// The input of the decoder, preceded by bytes that were peeked at. It remembers whether the end was reached.
struct PeekedInput<R> {
    lookahead: io::Cursor<Vec<u8>>,
    input: R,
    ended: bool,
}

impl<R: Read> Read for PeekedInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match self.lookahead.read(buffer)? {
            0 => self.input.read(buffer)?,
            count => count,
        };
        self.ended |= count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(stream: &[u8]) -> (Vec<u8>, Option<ErrorKind>) {
        let mut out = Vec::new();
        let error = Lz4Frames::new(stream).read_to_end(&mut out).err().map(|error| error.kind());
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
}
