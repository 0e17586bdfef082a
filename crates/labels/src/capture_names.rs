//! Labels in the names of captures: one command in each, and the action in the name of the file or of its folder.

use std::path::{Path, PathBuf};

use regex::Regex;

/// Separates the parts of a name.
const SEPARATORS: [char; 4] = ['_', '-', '.', ' '];

/// Endings of capture files, compressed or not.
const ENDINGS: [&str; 10] = ["pcap", "pcapng", "cap", "dmp", "frames", "gz", "zst", "lz4", "xz", "bz2"];

/// A capture of one command, and the time that it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledCapture {
    /// The file that the user named.
    pub path: PathBuf,
    /// The times of its first and last frame, in nanoseconds since the epoch; `None` if it holds nothing.
    pub span: Option<[i64; 2]>,
}

/// How actions are found in names.
#[derive(Debug, Clone, Default)]
pub struct NameRule(Option<Regex>);

impl std::str::FromStr for NameRule {
    type Err = String;

    /// A regular expression with a group `action`, and perhaps one `count`; it is searched for in the path.
    fn from_str(text: &str) -> Result<Self, String> {
        let pattern = Regex::new(text).map_err(|error| error.to_string())?;
        if pattern.capture_names().flatten().all(|name| name != "action") {
            return Err("it needs a group that is named: (?<action>…)".to_owned());
        }
        Ok(Self(Some(pattern)))
    }
}

impl NameRule {
    /// The action that a path names and how often it occurs; `None` if it names none.
    ///
    /// Without a pattern it is the file's name without endings, without a date, time or number before it and behind it
    /// (`toggle`, `toggle_001`, `2023-08-06_12-30-00_toggle-1`); if nothing remains, that of its folder.
    pub(crate) fn action(&self, path: &Path) -> Option<(String, u32)> {
        let Some(pattern) = &self.0 else {
            let file = path.file_name()?.to_string_lossy();
            let folder = || path.parent()?.file_name().map(|name| name.to_string_lossy().into_owned());
            return action_in(&without_endings(&file)).or_else(|| action_in(&folder()?)).map(|action| (action, 1));
        };
        let text = path.to_string_lossy();
        let found = pattern.captures(&text)?;
        let action = found.name("action").map(|action| action.as_str().trim().to_owned());
        let count = found.name("count").map_or(Some(1), |count| count.as_str().parse().ok())?;
        action.filter(|action| !action.is_empty()).map(|action| (action, count))
    }
}

fn without_endings(file: &str) -> String {
    let mut name = file;
    while let Some((stem, ending)) = name.rsplit_once('.')
        && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
        && !stem.is_empty()
    {
        name = stem;
    }
    name.to_owned()
}

/// What is between dates, times and numbers.
fn action_in(name: &str) -> Option<String> {
    let is_number = |part: &str| {
        let digits = part.trim_end_matches(['Z', 'z']);
        digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'T' | b't' | b':'))
            && (part.is_empty() || digits.bytes().any(|byte| byte.is_ascii_digit()))
    };
    let mut rest = name;
    while let Some((before, after)) = rest.split_once(SEPARATORS).filter(|(before, _)| is_number(before)) {
        debug_assert!(before.len() < rest.len());
        rest = after;
    }
    while let Some((before, _)) = rest.rsplit_once(SEPARATORS).filter(|(_, after)| is_number(after)) {
        rest = before;
    }
    (!is_number(rest)).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(path: &str) -> Option<(String, u32)> {
        NameRule::default().action(Path::new(path))
    }

    #[test]
    fn actions_are_between_dates_and_numbers() {
        for path in [
            "toggle.pcap",
            "toggle_001.pcapng.gz",
            "2023-08-06_toggle-07.pcap",
            "2023-08-06T12-30-00Z_toggle.frames.zst",
            "runs/20230806 toggle 3.cap",
            "toggle/0001.pcap",
            "lab/toggle-2/2023-08-06_12.30.00.pcap",
        ] {
            assert_eq!(action(path), Some(("toggle".into(), 1)), "{path}");
        }
        assert_eq!(action("a/2023-08-06_set_brightness-1.pcap"), Some(("set_brightness".into(), 1)));
        assert_eq!(action("a/on-off.pcap"), Some(("on-off".into(), 1)));
        assert_eq!((action("17/0001.pcap"), action("0001.pcap"), action("..")), (None, None, None));
    }

    #[test]
    fn patterns_name_action_and_count() {
        let rule: NameRule = r"/(?<action>[a-z]+)x(?<count>\d+)[^/]*$".parse().unwrap();
        assert_eq!(rule.action(Path::new("lab/onx3_17.pcap")), Some(("on".into(), 3)));
        assert_eq!(rule.action(Path::new("lab/on.pcap")), None);
        assert!("(on|off)".parse::<NameRule>().unwrap_err().contains("(?<action>"));
        assert!("(?<action>".parse::<NameRule>().is_err());
    }
}
