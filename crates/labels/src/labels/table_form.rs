//! How a table of labels is written: what spreadsheets, Python and people make of CSV.

use std::borrow::Cow;

/// The separators of columns; the first one where none occurs.
const SEPARATORS: [u8; 3] = *b",;\t";

pub(crate) const COMMENT: u8 = b'#';

/// The characters of the bytes from 0x80 to 0x9f in Windows-1252, where Latin-1 has control characters. Five are open, and
/// stay those (<https://encoding.spec.whatwg.org/index-windows-1252.txt>).
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text in UTF-8, and the name of its encoding if that was another one: what a byte order mark says, or, of text that
/// is no UTF-8, what Windows writes in the West. Bytes that are no text are found with their line later.
pub(crate) fn decoded(bytes: &[u8]) -> (Cow<'_, [u8]>, Option<&'static str>) {
    let (text, encoding) = match bytes {
        [0xef, 0xbb, 0xbf, text @ ..] => return (text.into(), None),
        [0xff, 0xfe, text @ ..] => (utf_16(text, u16::from_le_bytes), "UTF-16LE"),
        [0xfe, 0xff, text @ ..] => (utf_16(text, u16::from_be_bytes), "UTF-16BE"),
        _ if bytes.contains(&0) || std::str::from_utf8(bytes).is_ok() => return (bytes.into(), None),
        _ => (bytes.iter().map(|byte| western(*byte)).collect(), "windows-1252"),
    };
    (text.into_bytes().into(), Some(encoding))
}

/// What is no UTF-16 becomes U+FFFD.
fn utf_16(text: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, rest) = text.as_chunks();
    let characters = char::decode_utf16(pairs.iter().map(|pair| unit(*pair)));
    let text = characters.map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER));
    text.chain(rest.iter().map(|_| char::REPLACEMENT_CHARACTER)).collect()
}

fn western(byte: u8) -> char {
    let special = byte.checked_sub(0x80).and_then(|at| WINDOWS_1252.get(usize::from(at)));
    special.copied().unwrap_or(char::from(byte))
}

/// The separator of a table's columns: that which a first line `sep=;` names, else that which the header has most of.
/// With the text, and how many lines there are above it.
pub(crate) fn separated(text: &[u8]) -> (u8, &[u8], u64) {
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', separator] = first.trim_ascii_end()
        && SEPARATORS.contains(separator)
    {
        return (*separator, text.get(first.len() + 1..).unwrap_or_default(), 1);
    }
    let is_header = |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(&[COMMENT]);
    let header = text.split(|byte| *byte == b'\n').find(is_header).unwrap_or_default();
    let times = |separator: u8| header.split(|byte| *byte == separator).count();
    let [usual, others @ ..] = SEPARATORS;
    let most = |best, other| if times(other) > times(best) { other } else { best };
    (others.into_iter().fold(usual, most), text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_those_of_the_header() {
        let separator = |text: &str| char::from(separated(text.as_bytes()).0);
        assert_eq!(separator("time,action\n1;5,on\n"), ',');
        assert_eq!(separator("# times, of my clock\n\ntime;on;off\n1,5;1;0\n"), ';');
        assert_eq!(separator("time\taction\n"), '\t');
        assert_eq!(separator("time"), ',');
        assert_eq!(separated(b"sep=;\r\ntime;on\n"), (b';', &b"time;on\n"[..], 1));
    }

    #[test]
    fn bytes_are_what_their_mark_says_or_what_windows_writes() {
        let decoded = |bytes| decoded(bytes).0.into_owned();
        assert_eq!(decoded(b"\xef\xbb\xbftime"), b"time");
        assert_eq!(decoded(b"\xff\xfet\0i\0\xfc\0"), "tiü".as_bytes());
        assert_eq!(decoded(b"\xfe\xff\0t\0i"), b"ti");
        assert_eq!(decoded(b"\xff\xfe=\xd8\0\xdex\0\xd8\xd8i"), "😀x\u{fffd}\u{fffd}".as_bytes());
        assert_eq!(decoded(b"time"), b"time");
        assert_eq!(decoded(b"K\xfcche \x80"), "Küche €".as_bytes());
        assert_eq!(decoded(b"\xff\0"), b"\xff\0");
    }
}
