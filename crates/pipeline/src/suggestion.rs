//! Suggests what an unknown word probably meant.

use strsim::{damerau_levenshtein, jaro_winkler};
use toml::Value;

use crate::registry::StageEntry;

/// Words less similar than this are not suggested.
const MIN_SIMILARITY: f64 = 0.8;

/// The most similar of the known words, if one is similar enough.
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

/// Why a stage rejects an option, given the message of the parser.
pub(crate) fn fault_of_option(entry: &StageEntry, key: &str, value: &Value, message: &str) -> String {
    let stage = entry.name;
    let keys = entry.keys();
    if !keys.iter().any(|known| known == key) {
        let meant = did_you_mean(key, keys.iter().map(String::as_str));
        return format!("{stage}.{key}: `{stage}` has no such option{meant}{} {}", joint(&meant), listed(&keys));
    }
    let choices = entry.choices(key);
    match value {
        Value::String(text) if !choices.is_empty() => {
            let meant = did_you_mean(text, choices.iter().map(String::as_str));
            format!("{stage}.{key}: `{text}` is not a choice{meant}{} {}", joint(&meant), listed(&choices))
        }
        _ => format!("{stage}.{key}: {}", message.trim_end()),
    }
}

/// Joins a question, if there is one, to the list of alternatives.
fn joint(question: &str) -> &'static str {
    if question.is_empty() { "; there are" } else { " There are" }
}

/// Words as a list in a sentence.
pub(crate) fn listed(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
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
        let fault = |key: &str, value: &str| fault_of_option(segmenter, key, &value.into(), "invalid type\n");
        assert!(
            fault("gapp", "1s")
                .starts_with("command-segmenter.gapp: `command-segmenter` has no such option; did you mean `gap`?")
        );
        assert!(
            fault("colour", "red").contains("has no such option; there are `algorithm`, `"),
            "{}",
            fault("colour", "red")
        );
        assert!(
            fault("algorithm", "adaptiv")
                .contains("`adaptiv` is not a choice; did you mean `adaptive`? There are `gap`")
        );
        assert_eq!(fault("gap", "x"), "command-segmenter.gap: invalid type");
    }
}
