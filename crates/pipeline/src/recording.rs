//! Frame streams in files: compressed by the name of the file when written, recognised by content when read.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use anyhow::Context;
use flate2::write::GzEncoder;
use sizeleak_platform::runtime::stdin;

const ZSTD_LEVEL: i32 = 3;

pub struct Recording(Encoder);

enum Encoder {
    Plain(BufWriter<File>),
    Zstd(zstd::Encoder<'static, File>),
    Gzip(GzEncoder<File>),
}

impl Recording {
    pub fn new(file: File, compression: Compression) -> io::Result<Self> {
        Ok(Self(match compression {
            Compression::None => Encoder::Plain(BufWriter::new(file)),
            Compression::Gzip => Encoder::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(file, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
        }))
    }

    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Encoder::Plain(mut writer) => writer.flush(),
            Encoder::Zstd(encoder) => encoder.finish().map(drop),
            Encoder::Gzip(encoder) => encoder.finish().map(drop),
        }
    }
}

impl Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Encoder::Plain(writer) => writer.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
            Encoder::Gzip(encoder) => encoder.write(bytes),
        }
    }

    /// Does nothing: the file is read only when complete, and flushing makes compression worse.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Zstd,
    Gzip,
}

impl Compression {
    /// Chosen by the extension of a file name: `.zst`, `.gz`, or none.
    pub fn of_name(file: &Path) -> Self {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("zst") => Self::Zstd,
            Some("gz") => Self::Gzip,
            _ => Self::None,
        }
    }
}

/// The decompressed stream; its first bytes, which this waits for, show the compression.
pub fn decompressed(input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    sizeleak_capture::decompressed(Box::new(input))
}

/// A file, or stdin for `-` or `None`, decompressed; and its name in messages.
pub fn open(file: Option<&Path>) -> anyhow::Result<(Box<dyn Read + Send>, String)> {
    let (opened, name) = match file.filter(|path| path.as_os_str() != "-") {
        Some(path) => (File::open(path), path.display().to_string()),
        None => (stdin(), "stdin".to_owned()),
    };
    let input = opened.and_then(decompressed).with_context(|| name.clone())?;
    Ok((input, name))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::recording::decompressed;

    fn written(bytes: &[u8], compression: Compression, step: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let mut recording = Recording::new(file.try_clone().unwrap(), compression).unwrap();
        for part in bytes.chunks(step) {
            recording.write_all(part).unwrap();
            recording.flush().unwrap();
        }
        recording.finish().unwrap();
        file.rewind().unwrap();
        file
    }

    proptest! {
        #[test]
        fn written_bytes_read_back(
            mut bytes in prop::collection::vec(any::<u8>(), 1..3000),
            step in 1usize..700,
            name in prop::sample::select(&["a.zst", "a.gz", "a.frames"][..]),
        ) {
            // Input that looks compressed would be decompressed; frame streams never do.
            bytes[0] = 0x81;
            let file = written(&bytes, Compression::of_name(Path::new(name)), step);
            let mut read = Vec::new();
            decompressed(file).unwrap().read_to_end(&mut read).unwrap();
            prop_assert_eq!(read, bytes);
        }
    }
}
