//! Labels in the names of captures: one command in each, and the action in the name of the file or of its folder.

use std::path::{Path, PathBuf};

use regex_lite::Regex;

const SEPARATORS: [char; 4] = ['_', '-', '.', ' '];

const ENDINGS: [&str; 10] = ["pcap", "pcapng", "cap", "dmp", "frames", "gz", "zst", "lz4", "xz", "bz2"];

/// A capture of one command, and the time that it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledCapture {
    /// The file that the user named.
    pub path: PathBuf,
    /// The times of its first and last frame, in nanoseconds since the epoch; `None` if it holds nothing.
    pub span: Option<[i64; 2]>,
}

#[derive(Debug, Clone, Default)]
pub struct NameRule(Option<Regex>);

impl std::str::FromStr for NameRule {
    type Err = String;

    /// A regular expression with a group `action`, and perhaps one `count`, which is searched for in the path; or nothing.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let pattern = Regex::new(text).map_err(|error| error.to_string())?;
        if pattern.capture_names().flatten().all(|name| name != "action") {
            return Err("it needs a group that is named: (?<action>…)".to_owned());
        }
        Ok(Self(Some(pattern)))
    }
}

/// The action of each capture, and how often it occurs; `None` where it names none.
type NamedActions = Vec<Option<(String, u32)>>;

impl NameRule {
    /// The actions that some paths name. Without a pattern, files that all have one name in folders of several names are
    /// named by their folders: `on/anon.pcap` and `off/anon.pcap` are not two captures of an action `anon`. That name
    /// comes with them then.
    pub(crate) fn actions<'a>(&self, paths: impl Iterator<Item = &'a Path> + Clone) -> (NamedActions, Option<String>) {
        let actions: NamedActions = paths.clone().map(|path| self.action(path)).collect();
        let are_alike = |actions: &[Option<(String, u32)>]| actions.windows(2).all(|pair| pair[0] == pair[1]);
        if let (None, [Some((name, _)), ..]) = (&self.0, &actions[..])
            && are_alike(&actions)
        {
            let of_folders: NamedActions = paths.map(action_in_folder).collect();
            if !are_alike(&of_folders) && of_folders.iter().all(Option::is_some) {
                return (of_folders, Some(name.clone()));
            }
        }
        (actions, None)
    }

    /// The action that a path names and how often it occurs; `None` if it names none.
    ///
    /// Without a pattern it is the file's name without endings, without a date, time or number before it and behind it
    /// (`toggle`, `toggle_001`, `2023-08-06_12-30-00_toggle-1`); if nothing remains, that of its folder.
    fn action(&self, path: &Path) -> Option<(String, u32)> {
        let Some(pattern) = &self.0 else {
            let file = path.file_name()?.to_string_lossy();
            return action_in(without_endings(&file)).or_else(|| action_in_folder(path));
        };
        let text = path.to_string_lossy();
        let found = pattern.captures(&text)?;
        let action = found.name("action").map(|action| action.as_str().trim().to_owned());
        let count = found.name("count").map_or(Some(1), |count| count.as_str().parse().ok())?;
        action.filter(|action| !action.is_empty()).map(|action| (action, count))
    }
}

fn action_in_folder(path: &Path) -> Option<(String, u32)> {
    action_in(&path.parent()?.file_name()?.to_string_lossy())
}

fn without_endings(mut name: &str) -> &str {
    while let Some((stem, ending)) = name.rsplit_once('.')
        && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
        && !stem.is_empty()
    {
        name = stem;
    }
    name
}

fn action_in(name: &str) -> Option<(String, u32)> {
    let is_number = |part: &str| {
        let digits = part.trim_end_matches(['Z', 'z']);
        digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'T' | b't' | b':'))
            && (part.is_empty() || digits.bytes().any(|byte| byte.is_ascii_digit()))
    };
    let mut rest = name;
    while let Some((_, after)) = rest.split_once(SEPARATORS).filter(|(before, _)| is_number(before)) {
        rest = after;
    }
    while let Some((before, _)) = rest.rsplit_once(SEPARATORS).filter(|(_, after)| is_number(after)) {
        rest = before;
    }
    (!is_number(rest)).then(|| (rest.to_owned(), 1))
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
    fn folders_are_the_actions_where_all_files_have_one_name() {
        let named = |paths: &[&str], rule: &NameRule| rule.actions(paths.iter().map(Path::new));
        let actions = |names: &[&str]| names.iter().map(|name| Some(((*name).to_owned(), 1))).collect::<Vec<_>>();
        let rule = NameRule::default();
        let found = named(&["on/anon_1.pcap", "off-2/anon_2.pcap", "on/anon_3.pcap"], &rule);
        assert_eq!(found, (actions(&["on", "off", "on"]), Some("anon".to_owned())));
        for (paths, names) in [
            (["on/anon.pcap", "off/other.pcap"], ["anon", "other"]),
            (["lab/toggle_1.pcap", "lab/toggle_2.pcap"], ["toggle", "toggle"]),
            (["2/toggle.pcap", "3/toggle.pcap"], ["toggle", "toggle"]),
            (["a/toggle.pcap", "toggle.pcap"], ["toggle", "toggle"]),
        ] {
            let found = named(&paths, &rule);
            assert_eq!(found, (actions(&names), None), "{paths:?}");
        }
        let rule: NameRule = "(?<action>anon)".parse().unwrap();
        assert_eq!(named(&["on/anon.pcap", "off/anon.pcap"], &rule).0, actions(&["anon", "anon"]));
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
