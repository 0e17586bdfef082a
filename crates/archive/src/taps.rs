//! Taps: which files were captured where, of the same traffic. Together they are one capture point.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use glob::PatternError;
use sizeleak_capture::content_below;

use crate::capture_file::{CaptureFile, SPECIAL};
use crate::description::TapFiles;
use crate::discovery::{CapturePoint, Matches};
use crate::error::{MAX_NAME, TapFault};

/// A place where traffic was captured, and a pattern of its files: `NAME=GLOB`. A tap may have several patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tap {
    /// Its name: letters, digits, `-` and `_`.
    name: String,
    /// What matches its files, and folders of them.
    pattern: String,
}

impl FromStr for Tap {
    type Err = TapFault;

    fn from_str(text: &str) -> Result<Self, TapFault> {
        let (name, pattern) = text.split_once('=').ok_or(TapFault::Form)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_plain) || pattern.is_empty() {
            return Err(TapFault::Form);
        }
        Ok(Self { name: name.to_owned(), pattern: pattern.to_owned() })
    }
}

/// Moves the files of taps from the points that they are in, if they are, into a point of their own. Points without a file
/// are left out. `out` is the folder of results, without links.
///
/// # Errors
/// [`TapFault`].
pub(crate) fn with_tapped_point(
    mut points: Vec<CapturePoint>,
    taps: &[Tap],
    out: &Path,
) -> Result<Vec<CapturePoint>, TapFault> {
    if taps.is_empty() {
        return Ok(points);
    }
    let mut found = FoundTaps::default();
    for tap in taps {
        found.add(tap, out)?;
    }
    let is_of_tap = |path: &Path| path.canonicalize().is_ok_and(|real| found.owners.contains_key(&real));
    for point in &mut points {
        point.files.retain(|path| !is_of_tap(path));
        point.unopened.retain(|file| !found.unopened.contains_key(Path::new(&file.path)));
    }
    points.retain(|point| !point.files.is_empty() || !point.unopened.is_empty());
    let tapped = found.into_point();
    if let Some(other) = points.iter().find(|point| point.name == tapped.name) {
        return Err(TapFault::SameName { name: tapped.name, folder: other.folder.clone() });
    }
    points.push(tapped);
    points.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(points)
}

/// Files of taps, while they are found.
#[derive(Default)]
struct FoundTaps {
    /// In the order in which they were named first: the clock of the first one is that of all.
    taps: Vec<TapFiles>,
    /// The tap of each file, by its real path: a file with several names is read once.
    owners: BTreeMap<PathBuf, String>,
    unopened: BTreeMap<PathBuf, CaptureFile>,
}

impl FoundTaps {
    fn add(&mut self, tap: &Tap, out: &Path) -> Result<(), TapFault> {
        let Tap { name, pattern } = tap;
        let of_pattern = |error: PatternError| TapFault::Pattern {
            tap: name.clone(),
            pattern: pattern.clone(),
            fault: error.msg.to_owned(),
            place: error.pos + 1,
        };
        // What exists is taken as it is, whatever characters it has.
        let matches = if Path::new(pattern).symlink_metadata().is_ok() {
            Matches { paths: vec![PathBuf::from(pattern)], ..Matches::default() }
        } else {
            Matches::of(pattern).map_err(of_pattern)?
        };
        self.add_unreadable(matches.unreadable);
        let files: Vec<PathBuf> = matches.paths.into_iter().flat_map(|path| self.files_of(path)).collect();
        if files.is_empty() {
            return Err(TapFault::NoMatch { tap: name.clone(), pattern: pattern.clone() });
        }
        if !self.taps.iter().any(|known| known.name == *name) {
            self.taps.push(TapFiles { name: name.clone(), files: BTreeSet::new() });
        }
        files.into_iter().try_for_each(|file| self.add_file(tap, file, out))
    }

    /// A file, or all below a folder.
    fn files_of(&mut self, path: PathBuf) -> Vec<PathBuf> {
        if !path.is_dir() {
            return vec![path];
        }
        let content = content_below(&path);
        for special in content.special {
            let file = CaptureFile::special(&special.path, special.kind);
            self.unopened.insert(special.path, file);
        }
        self.add_unreadable(content.unreadable);
        content.files
    }

    fn add_unreadable(&mut self, unreadable: Vec<(PathBuf, io::Error)>) {
        for (path, error) in unreadable {
            let file = CaptureFile::unreadable(&path, &error);
            self.unopened.insert(path, file);
        }
    }

    fn add_file(&mut self, tap: &Tap, file: PathBuf, out: &Path) -> Result<(), TapFault> {
        if file.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let special = CaptureFile::special(&file, SPECIAL);
            self.unopened.insert(file, special);
            return Ok(());
        }
        let real = file.canonicalize().unwrap_or_else(|_| file.clone());
        if real.starts_with(out) {
            return Err(TapFault::InResults { file, tap: tap.name.clone() });
        }
        match self.owners.get(&real) {
            Some(owner) if *owner == tap.name => return Ok(()),
            Some(owner) => return Err(TapFault::InTwo { file, one: owner.clone(), other: tap.name.clone() }),
            None => self.owners.insert(real, tap.name.clone()),
        };
        if let Some(files) = self.taps.iter_mut().find(|known| known.name == tap.name) {
            files.files.insert(file);
        }
        Ok(())
    }

    fn into_point(self) -> CapturePoint {
        let mut names: Vec<&str> = self.taps.iter().map(|tap| &*tap.name).collect();
        names.sort_unstable();
        let name = names.join("+");
        let files: BTreeSet<PathBuf> = self.taps.iter().flat_map(|tap| tap.files.iter().cloned()).collect();
        CapturePoint {
            folder: PathBuf::from(&name),
            name,
            files: files.into_iter().collect(),
            unopened: self.unopened.into_values().collect(),
            taps: self.taps,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::discovery::{Absence, NamedPaths, PointsOf, capture_points};

    fn tap(name: &str, folder: &Path, pattern: &str) -> Tap {
        format!("{name}={}", folder.join(pattern).display()).parse().unwrap()
    }

    #[test]
    fn a_tap_has_a_name_and_a_pattern() {
        let tap: Tap = "lan_2=a=b/*.pcap".parse().unwrap();
        assert_eq!((&*tap.name, &*tap.pattern), ("lan_2", "a=b/*.pcap"));
        for text in ["", "lan", "lan=", "=x", "l n=x", "../lan=x", "a+b=x", "Ö=x", &format!("{}=x", "a".repeat(33))] {
            assert_eq!(text.parse::<Tap>(), Err(TapFault::Form), "{text}");
        }
    }

    #[test]
    fn files_of_taps_are_one_point_whatever_folder_they_are_in() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["06/mirror.pcap", "06/own.pcap", "06/other.pcap", "07/mirror.pcap", "own/a", "own/b/c"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), name).unwrap();
        }
        symlink("../07/mirror.pcap", root.join("own/again")).unwrap();
        symlink("nowhere", root.join("own/lost")).unwrap();
        let taps = [
            tap("wan", &root, "0*/own.pcap"),
            tap("lan", &root, "0*/mirror.pcap"),
            tap("lan", &root, "06/m*"),
            tap("wan", &root, "own/[ab]"),
        ];
        let operands = NamedPaths::of(std::slice::from_ref(&root), Absence::IsError).unwrap();
        let points = capture_points(operands, PointsOf::Folders).unwrap();
        let points = with_tapped_point(points, &taps, &root.join("out")).unwrap();
        let tapped = points.iter().find(|point| point.name == "lan+wan").unwrap();
        let names: Vec<(&str, Vec<PathBuf>)> =
            tapped.taps.iter().map(|tap| (&*tap.name, tap.files.iter().cloned().collect())).collect();
        let at = |name: &str| root.join(name);
        let wan = ["06/own.pcap", "own/a", "own/b/c"].map(at).to_vec();
        assert_eq!(names, [("wan", wan), ("lan", ["06/mirror.pcap", "07/mirror.pcap"].map(at).to_vec())]);
        assert_eq!(tapped.files.len(), 5);
        let others: Vec<PathBuf> =
            points.iter().filter(|point| point.taps.is_empty()).flat_map(|point| point.files.iter().cloned()).collect();
        assert_eq!(others, ["06/other.pcap", "own/lost"].map(at), "no point is left without a file");
        let alone = with_tapped_point(Vec::new(), &taps[..1], &at("out")).unwrap();
        assert!(alone.len() == 1 && alone[0].name == "wan" && alone[0].files == [at("06/own.pcap")]);
    }

    #[test]
    fn patterns_without_a_match_and_files_of_two_taps_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("a.pcap"), "a").unwrap();
        symlink("a.pcap", root.join("b.pcap")).unwrap();
        let fault = |taps: &[Tap], out: &str| {
            with_tapped_point(Vec::new(), taps, &root.join(out)).map(|points| points.len()).unwrap_err().to_string()
        };
        let a = tap("lan", &root, "a*");
        let none = fault(&[a.clone(), tap("wan", &root, "x*")], "out");
        assert!(none.contains("tap `wan`: no file matches") && none.contains("/x*"), "{none}");
        let two = fault(&[a.clone(), tap("wan", &root, "b*")], "out");
        assert!(two.contains("b.pcap is of tap `lan` and of tap `wan`"), "{two}");
        let broken = fault(&[tap("lan", &root, "a[")], "out");
        assert!(broken.contains("is no pattern") && broken.contains("at character"), "{broken}");
        let inside = fault(std::slice::from_ref(&a), ".");
        assert!(inside.contains("is in the folder for results"), "{inside}");
        let folder =
            CapturePoint { name: "lan".to_owned(), files: vec![root.join("lan/c")], ..CapturePoint::default() };
        let same = with_tapped_point(vec![folder], &[a], &root.join("out")).unwrap_err();
        assert!(matches!(same, TapFault::SameName { name, .. } if name == "lan"));
    }
}
