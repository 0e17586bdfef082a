//! Files that stand in the place of those that are wanted.

/// How a pointer of Git LFS begins.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn files_themselves_are_not() {
        for beginning in [&b""[..], b"time,on,off", b"version = 1", b"<", b"version https://git", b"\xd4\xc3\xb2\xa1"] {
            assert_eq!(stand_in(beginning), None);
        }
    }
}
