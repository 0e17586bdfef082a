//! Suggests what an unknown word probably meant.

use strsim::{damerau_levenshtein, jaro_winkler};

/// Words less similar than this are not suggested.
const MIN_SIMILARITY: f64 = 0.8;

pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('_', "-");
    let similarity = |known: &str| {
        // `segmenter` is short for `command-segmenter`, `stages` is too long for `stage`.
        let is_part = word.len() > 3 && (known.split('-').any(|part| part == word) || word.starts_with(known));
        let edits = damerau_levenshtein(&word, known);
        if is_part || edits <= 1 && word.len() > 2 { 1.0 - edits as f64 / 1000.0 } else { jaro_winkler(&word, known) }
    };
    let scored = known
        .into_iter()
        .map(|known| (similarity(known), known))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY);
    scored.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, known)| known)
}

/// The suggestion as the end of a sentence; empty if no word is similar.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

/// A parser's message, with the word that was probably meant where it knows one.
pub(crate) fn explained(message: &str) -> String {
    if message.contains("` as i128") || message.contains("` as u128") {
        return "a number that is too large".to_owned();
    }
    let mut words = message.split('`').skip(1).step_by(2);
    let fault = if message.starts_with("unknown field") { "means nothing here" } else { "is not a choice" };
    let Some(word) = words.next().filter(|_| message.starts_with("unknown ")) else {
        return message.trim_end().to_owned();
    };
    let known: Vec<&str> = words.collect();
    let meant = did_you_mean(word, known.iter().copied());
    let joint = if meant.is_empty() { "; there are" } else { " There are" };
    format!("`{word}` {fault}{meant}{joint} `{}`", known.join("`, `"))
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;
    use crate::registry;

    #[test]
    fn similar_words_are_suggested() {
        let stages = || registry::all().map(|entry| entry.name);
        for (word, meant) in [
            ("segmenter", Some("command-segmenter")),
            ("comand-segmenter", Some("command-segmenter")),
            ("record_sizer", Some("record-sizer")),
            ("Pruner", Some("pruner")),
            ("prune", Some("pruner")),
            ("captures", Some("capture")),
            ("decompose", Some("decomposer")),
            ("wireshark", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, stages()), meant, "{word}");
        }
        assert_eq!(nearest("stages", ["pipeline", "stage"]), Some("stage"));
    }

    #[test]
    fn unknown_options_and_values_list_the_alternatives() {
        let segmenter = registry::find("command-segmenter").unwrap();
        let fault = |key: &str, value: &str| segmenter.set(&mut Table::new(), key, value.into(), None).unwrap_err();
        assert!(
            fault("gapp", "1s").starts_with("command-segmenter.gapp: `gapp` means nothing here; did you mean `gap`?")
        );
        assert!(
            fault("colour", "red").contains("means nothing here; there are `algorithm`, `"),
            "{}",
            fault("colour", "red")
        );
        assert!(
            fault("algorithm", "adaptiv")
                .contains("`adaptiv` is not a choice; did you mean `adaptive`? There are `gap`")
        );
        assert!(fault("gap", "x").starts_with("command-segmenter.gap: "));
    }
}
