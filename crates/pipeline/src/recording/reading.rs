//! Reads what may be compressed.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::Context;
use flate2::read::MultiGzDecoder;

use super::Compression;

/// A compressed stream may ask for this much memory to decompress it, and no more: what `zstd --long` needs.
const MOST_MEMORY_LOG: u32 = 27;

/// The stream itself, or what is compressed in it, as its first bytes say. Waits for those.
///
/// # Errors
/// The input's.
pub fn decompressed(mut input: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::new();
    input.by_ref().take(4).read_to_end(&mut magic)?;
    let compression = Compression::of_content(&magic);
    let whole = Cursor::new(magic).chain(input);
    Ok(match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(MultiGzDecoder::new(whole)),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::new(whole)?;
            decoder.window_log_max(MOST_MEMORY_LOG)?;
            Box::new(decoder)
        }
    })
}

/// Standard input as a file: the standard library's lock would be held for as long as anything waits for it.
///
/// # Errors
/// The system's.
pub fn stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// A file, or stdin where it is `-` or none, decompressed; and what messages call it.
///
/// # Errors
/// One sentence that names it.
pub fn open(file: Option<&Path>) -> anyhow::Result<(Box<dyn Read + Send>, String)> {
    let (opened, name) = match file.filter(|path| path.as_os_str() != "-") {
        Some(path) => (File::open(path), path.display().to_string()),
        None => (stdin(), "stdin".to_owned()),
    };
    let input = opened.and_then(decompressed).with_context(|| name.clone())?;
    Ok((input, name))
}
