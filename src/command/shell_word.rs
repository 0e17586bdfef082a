//! Words of command lines to copy.

/// A word as a POSIX shell reads it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,%+@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        let shown = ["a/b-c.toml", "", "two words", "it's"].map(quoted);
        assert_eq!(shown, ["a/b-c.toml", "''", "'two words'", r"'it'\''s'"]);
        let shown = ["home.pcap", "my home.pcap", "it's $HOME.pcap"].map(quoted);
        assert_eq!(shown, ["home.pcap", "'my home.pcap'", r"'it'\''s $HOME.pcap'"]);
    }
}
