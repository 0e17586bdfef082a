//! Reads files that may be compressed.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::Context;
use flate2::read::MultiGzDecoder;

use super::Compression;

/// The largest zstd window that is accepted, as a power of two: that of `zstd --long`.
const MAX_WINDOW_LOG: u32 = 27;

/// The decompressed stream; its first bytes, which this waits for, show the compression.
///
/// # Errors
/// I/O errors of the input.
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
            decoder.window_log_max(MAX_WINDOW_LOG)?;
            Box::new(decoder)
        }
    })
}

/// Standard input as a file. The standard library would hold its lock while anything waits for input.
///
/// # Errors
/// I/O errors of the system.
pub fn stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// A file, or stdin for `-` or `None`, decompressed; and its name in messages.
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
