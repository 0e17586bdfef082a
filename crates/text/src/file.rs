//! Files of text that are read as a whole, and therefore only up to a size.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The most bytes of a file that people write: an inventory, a scenario, a map. TOML takes about fifty times as much memory
/// while it is read.
pub const MAX_WRITTEN_BYTES: u64 = 4 << 20;

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// I/O errors of the system; [`ErrorKind::FileTooLarge`] for a longer one, [`ErrorKind::InvalidData`] for one that is not
/// UTF-8.
pub fn read_text(file: &Path, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes, the limit")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is no UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_up_to_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        let read = |bytes: &[u8], most| {
            std::fs::write(&file, bytes).unwrap();
            read_text(&file, most).map_err(|error| error.to_string())
        };
        assert_eq!(read("für".as_bytes(), 4), Ok("für".to_owned()));
        assert!(read("für".as_bytes(), 2).unwrap_err().contains("more than 2 bytes"), "cut in a character");
        assert!(read(b"f\xfcr", 4).unwrap_err().contains("no UTF-8"));
        assert_eq!(read_text(&folder.path().join("none"), 4).unwrap_err().kind(), ErrorKind::NotFound);
        // Such a file has no end, and no length.
        assert!(read_text(Path::new("/dev/zero"), MAX_WRITTEN_BYTES).is_err());
    }
}
