//! Text from outside (names in frames, labels and files, messages of foreign programs) made safe for what shows it:
//! terminals and logs, spreadsheets, and columns of limited width. And files of text, which are read as a whole, and
//! therefore only up to a size, what a file is that only stands in the place of another, and the one way to write a time, a
//! share, or a number in a sentence.
//!
//! ```
//! use sizeleak_text::{cell, escaped, fitted};
//!
//! assert_eq!(escaped("\u{1b}[2J evil\u{202e}\n"), r"\u{1b}[2J evil\u{202e}\n");
//! assert_eq!(cell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
//! assert_eq!(fitted("kitchen lamp", 8), "kitchen…");
//! ```

mod shown;
mod time;

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

pub use shown::{
    cell, counted, escaped, escaped_json, escaped_lines, fitted, listed, needs_escape, percent, range_in_words,
    rough_percent, shortened, width, wrapped,
};
pub use time::{TimeRange, parse_time, rfc_3339, utc};

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

const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// How web pages begin, in lower case.
const WEB_PAGES: [&[u8]; 2] = [b"<!doctype html", b"<html"];

/// What a file that begins so is, and what to do, if it only stands in the place of another: a pointer of Git LFS, or a
/// web page that was saved instead of the file.
///
/// ```
/// let beginning = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a";
/// assert!(sizeleak_text::stand_in(beginning).is_some_and(|what| what.contains("git lfs pull")));
/// ```
pub fn stand_in(beginning: &[u8]) -> Option<&'static str> {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    let begins_like = |page: &&[u8]| beginning.get(..page.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(page));
    if beginning.starts_with(LFS_POINTER) {
        Some("a Git LFS pointer, which stands in the place of the file: `git lfs pull` fetches the file itself")
    } else if WEB_PAGES.iter().any(begins_like) {
        Some("a web page, saved in the place of the file: download the file itself")
    } else {
        None
    }
}

/// Whether more of a file that begins so is needed to know what [`stand_in`] says of it.
pub fn may_be_stand_in(beginning: &[u8]) -> bool {
    let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
    let continues =
        |whole: &[u8]| whole.get(..beginning.len()).is_some_and(|part| part.eq_ignore_ascii_case(beginning));
    continues(LFS_POINTER) || WEB_PAGES.into_iter().any(continues)
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

    #[test]
    fn pointers_and_web_pages_are_recognised() {
        for (beginning, word) in [
            (&b"version https://git-lfs.github.com/spec/v1\n"[..], "Git LFS pointer"),
            (b"<!DOCTYPE HTML PUBLIC", "web page"),
            (b"\xef\xbb\xbf\r\n\n<html lang=\"en\">", "web page"),
        ] {
            assert!(stand_in(beginning).unwrap().contains(word));
        }
    }

    #[test]
    fn beginnings_of_stand_ins_need_more() {
        for beginning in [&b"v"[..], b"version https:", b"<!DOC", b"\n", b""] {
            assert!(may_be_stand_in(beginning));
        }
        for beginning in [&b"time"[..], b"version 1", b"\x81", b"version https://git-lfs.github.com/spec/v1"] {
            assert!(!may_be_stand_in(beginning));
        }
    }

    #[test]
    fn files_themselves_are_not() {
        for beginning in [&b""[..], b"time,on,off", b"version = 1", b"<", b"version https://git", b"\xd4\xc3\xb2\xa1"] {
            assert_eq!(stand_in(beginning), None);
        }
    }
}
