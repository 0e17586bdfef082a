//! What the operands of an archive name: files and folders, and what patterns match.

use std::io;
use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError, glob_with};

use crate::error::ArchiveError;

/// As in a shell: `*` stays within a name, and names that begin with a dot are matched only by a dot.
const AS_SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// A file or folder that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) path: PathBuf,
    /// The folder that a pattern begins with, if the path was found by one.
    pub(crate) base: Option<PathBuf>,
}

/// What operands name.
#[derive(Debug, Default)]
pub(crate) struct NamedPaths {
    pub(crate) paths: Vec<NamedPath>,
    /// Folders that patterns could not look into.
    pub(crate) unreadable: Vec<(PathBuf, io::Error)>,
}

/// Whether there must be something to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// A pattern without a match is an error.
    IsError,
    /// It may match later.
    IsAllowed,
}

impl NamedPaths {
    /// Looks for what is named. An operand that exists is taken as it is, whatever characters it has.
    ///
    /// # Errors
    /// A path that does not exist, and a pattern that is none or that matches nothing.
    pub(crate) fn of(operands: &[PathBuf], absence: Absence) -> Result<Self, ArchiveError> {
        let mut named = Self::default();
        for operand in operands {
            match pattern(operand) {
                Some(text) => named.add_matches(operand, text, absence)?,
                None => named.paths.push(NamedPath { path: operand.clone(), base: None }),
            }
        }
        Ok(named)
    }

    fn add_matches(&mut self, operand: &Path, text: &str, absence: Absence) -> Result<(), ArchiveError> {
        let of_pattern = |error: PatternError| ArchiveError::InvalidPattern {
            pattern: operand.to_owned(),
            place: error.pos + 1,
            fault: error.msg,
        };
        let Matches { paths, unreadable } = Matches::of(text).map_err(of_pattern)?;
        if absence == Absence::IsError && paths.is_empty() && unreadable.is_empty() {
            return Err(ArchiveError::NoMatch(operand.to_owned()));
        }
        let base = fixed_part(operand);
        self.paths.extend(paths.into_iter().map(|path| NamedPath { path, base: Some(base.clone()) }));
        self.unreadable.extend(unreadable);
        Ok(())
    }
}

/// What a pattern matches.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    pub(crate) paths: Vec<PathBuf>,
    /// Folders that it could not look into.
    pub(crate) unreadable: Vec<(PathBuf, io::Error)>,
}

impl Matches {
    /// Looks for what a pattern matches.
    ///
    /// # Errors
    /// It is no pattern.
    pub(crate) fn of(pattern: &str) -> Result<Self, PatternError> {
        let mut matches = Self::default();
        for found in glob_with(pattern, AS_SHELL)? {
            match found {
                Ok(path) => matches.paths.push(path),
                Err(error) => matches.unreadable.push((error.path().to_owned(), error.into())),
            }
        }
        Ok(matches)
    }
}

/// The text of an operand that is a pattern.
fn pattern(operand: &Path) -> Option<&str> {
    let text = operand.to_str().filter(|text| has_wildcard(text))?;
    operand.symlink_metadata().is_err().then_some(text)
}

fn has_wildcard(text: &str) -> bool {
    text != Pattern::escape(text)
}

/// The folder that a pattern begins with: everything before the first part with a wildcard.
fn fixed_part(pattern: &Path) -> PathBuf {
    let is_fixed = |part: &Component<'_>| !has_wildcard(&part.as_os_str().to_string_lossy());
    let fixed: PathBuf = pattern.components().take_while(is_fixed).collect();
    if fixed.as_os_str().is_empty() { PathBuf::from(".") } else { fixed }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn found(operands: &[PathBuf]) -> Vec<PathBuf> {
        NamedPaths::of(operands, Absence::IsError).unwrap().paths.into_iter().map(|named| named.path).collect()
    }

    #[test]
    fn patterns_match_as_in_a_shell_and_what_exists_is_taken_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["01/hall/a.pcap", "01/a.pcap.gz", "01/.a.pcap.part", "02/b.pcap", "03/c.pcap", "d[1].pcap"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "x").unwrap();
        }
        let expected = ["01/a.pcap.gz", "01/hall/a.pcap", "02/b.pcap"].map(at);
        assert_eq!(found(&[at("0[1-2]/**/*.pcap*")]), expected);
        assert_eq!(found(&[at("d[1].pcap"), at("?3")]), [at("d[1].pcap"), at("03")]);
        let base = |pattern: &str| fixed_part(Path::new(pattern)).to_string_lossy().into_owned();
        assert_eq!([base("/x/y/*/z?.pcap"), base("*.pcap"), base("../a/[bc]")], ["/x/y", ".", "../a"]);
    }

    #[test]
    fn pattern_without_a_match_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let [none, broken] = ["*.pcap", "a[.pcap"].map(|name| folder.path().join(name));
        let error = |operand: &PathBuf, absence| NamedPaths::of(std::slice::from_ref(operand), absence).unwrap_err();
        assert!(matches!(error(&none, Absence::IsError), ArchiveError::NoMatch(path) if path == none));
        assert!(NamedPaths::of(&[none], Absence::IsAllowed).unwrap().paths.is_empty());
        for absence in [Absence::IsError, Absence::IsAllowed] {
            assert!(
                matches!(error(&broken, absence), ArchiveError::InvalidPattern { pattern, .. } if pattern == broken)
            );
        }
    }
}
