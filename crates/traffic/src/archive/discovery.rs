//! Finds the files of an archive and groups them into capture points.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError, glob_with};
use sizeleak_capture::content_below;
use sizeleak_pipeline::ConfigError;

use crate::archive::description::{CaptureFile, SPECIAL};
use crate::archive::layout::ArchiveError;

/// Longer names of points are cut, and told apart by a digest.
const MAX_NAME: usize = 120;

/// The files of one folder, which are read together.
#[derive(Debug, Default)]
pub(crate) struct CapturePoint {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) files: Vec<PathBuf>,
    /// What is not opened: pipes, sockets, devices, folders without permission.
    pub(crate) unopened: Vec<CaptureFile>,
}

impl CapturePoint {
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    }
}

#[derive(Default)]
struct FoundPoints {
    points: BTreeMap<PathBuf, CapturePoint>,
    /// The real paths of all files so far: a file with several names is read once.
    real: BTreeSet<PathBuf>,
    /// The files with several hard links, by point, device and inode: the first name of each in a point is read.
    linked: BTreeSet<(PathBuf, u64, u64)>,
    /// Links, which count only if what they lead to is not found without them.
    links: Vec<(PathBuf, PathBuf)>,
}

/// Each folder with files is a point, or with `one_point` each that is named, with all below it.
pub(crate) fn capture_points(named: NamedPaths, one_point: bool) -> Result<Vec<CapturePoint>, ArchiveError> {
    let mut found = FoundPoints::default();
    for NamedPath { path, base } in named.paths {
        let of_path = ArchiveError::of_file(&path);
        let base = base.and_then(|base| base.canonicalize().ok());
        if path.is_dir() {
            let real = path.canonicalize().map_err(of_path)?;
            let root = base.filter(|base| real.starts_with(base)).unwrap_or_else(|| real.clone());
            found.add_folder(&path, &real, &root, one_point);
        } else if let Some(base) = base {
            found.add_matched_file(&path, &base, one_point);
        } else {
            let real = path.canonicalize().map_err(of_path)?;
            let folder = real.parent().unwrap_or(Path::new("/")).to_owned();
            found.add_file(&path, &folder, &folder);
        }
    }
    for (path, error) in named.unreadable {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        found.point(&real, &real).unopened.push(CaptureFile::unreadable(&path, &error));
    }
    found.add_links();
    let mut named: BTreeMap<String, CapturePoint> = BTreeMap::new();
    for point in found.points.into_values() {
        if let Some(other) = named.get(&point.name) {
            return Err(ArchiveError::usage(format!(
                "{} and {} would both be the capture point `{}`: name a folder above both",
                other.folder.display(),
                point.folder.display(),
                point.name
            )));
        }
        named.insert(point.name.clone(), point);
    }
    let mut points: Vec<CapturePoint> = named.into_values().collect();
    for point in &mut points {
        point.files.sort();
    }
    Ok(points)
}

impl FoundPoints {
    /// Adds everything below a folder; `real` is where it is without links. Names of points begin with `root`.
    fn add_folder(&mut self, operand: &Path, real: &Path, root: &Path, one_point: bool) {
        let content = content_below(operand);
        let place = |path: &Path| {
            if one_point {
                return root.to_owned();
            }
            let folder = path.parent().unwrap_or(operand);
            folder.strip_prefix(operand).map_or_else(|_| real.to_owned(), |below| real.join(below))
        };
        for path in content.files {
            self.add_file(&path, &place(&path), root);
        }
        let special = content.special.iter().map(|special| CaptureFile::special(&special.path, special.kind));
        let unreadable = content.unreadable.iter().map(|(path, error)| CaptureFile::unreadable(path, error));
        for file in special.chain(unreadable).collect::<Vec<_>>() {
            let folder = place(Path::new(&file.path));
            self.point(&folder, root).unopened.push(file);
        }
    }

    fn add_matched_file(&mut self, path: &Path, base: &Path, one_point: bool) {
        let above = path.parent().and_then(|above| above.canonicalize().ok());
        let folder = above.filter(|_| !one_point).unwrap_or_else(|| base.to_owned());
        self.add_file(path, &folder, base);
    }

    fn add_file(&mut self, path: &Path, folder: &Path, root: &Path) {
        self.point(folder, root);
        let metadata = path.metadata().ok();
        if metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
            let file = CaptureFile::special(path, SPECIAL);
            self.point(folder, root).unopened.push(file);
        } else if path.is_symlink() {
            self.links.push((path.to_owned(), folder.to_owned()));
        } else if self.real.insert(path.canonicalize().unwrap_or_else(|_| path.to_owned())) {
            // Elsewhere inodes may be no more than numbers that a network drive made up.
            let linked = metadata.filter(|metadata| metadata.nlink() > 1);
            if linked.is_none_or(|file| self.linked.insert((folder.to_owned(), file.dev(), file.ino()))) {
                self.point(folder, root).files.push(path.to_owned());
            }
        }
    }

    /// Adds the links whose targets were not found otherwise, and those to nothing.
    fn add_links(&mut self) {
        self.links.sort();
        for (link, folder) in std::mem::take(&mut self.links) {
            let is_new = match link.canonicalize() {
                Ok(target) => self.real.insert(target),
                Err(_) => true,
            };
            if let Some(point) = self.points.get_mut(&folder).filter(|_| is_new) {
                point.files.push(link);
            }
        }
    }

    fn point(&mut self, folder: &Path, root: &Path) -> &mut CapturePoint {
        self.points.entry(folder.to_owned()).or_insert_with(|| CapturePoint {
            name: point_name(folder, root),
            folder: folder.to_owned(),
            ..CapturePoint::default()
        })
    }
}

/// The name of a point: its path from the folder that was named, that folder included. It has only letters, digits and
/// `.`, `-`, `_`, `+`; everything else is percent-encoded.
fn point_name(folder: &Path, root: &Path) -> String {
    let above = root.parent().unwrap_or(root);
    let below = folder.strip_prefix(above).unwrap_or(folder);
    let parts = below.components().map(|part| encoded(part.as_os_str().as_bytes()));
    let name = parts.collect::<Vec<_>>().join("+");
    let name = if name.is_empty() { "root".to_owned() } else { name };
    match name.get(..MAX_NAME) {
        Some(beginning) if name.len() > MAX_NAME => {
            let digest = blake3::hash(name.as_bytes()).to_hex();
            format!("{beginning}-{}", digest.get(..16).unwrap_or_default())
        }
        _ => name,
    }
}

fn encoded(text: &[u8]) -> String {
    text.iter()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(*byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

/// As in a shell: `*` stays within a name, and names that begin with a dot are matched only by a dot.
const AS_SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) path: PathBuf,
    /// The folder that a pattern begins with, if the path was found by one.
    pub(crate) base: Option<PathBuf>,
}

#[derive(Debug, Default)]
pub(crate) struct NamedPaths {
    pub(crate) paths: Vec<NamedPath>,
    /// Folders that patterns could not look into.
    pub(crate) unreadable: Vec<(PathBuf, io::Error)>,
}

/// Whether there must be something to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    IsError,
    IsAllowed,
}

impl NamedPaths {
    /// Looks for what is named. An operand that exists is taken as it is, whatever characters it has.
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
        let (shown, of_stars) =
            (operand.display(), "in a pattern `*` stays within a name, and `**` stands for folders at any depth");
        let of_pattern = |PatternError { pos, msg }: PatternError| {
            let place = pos + 1;
            ArchiveError::usage(format!("{shown}: {msg} at character {place} of the pattern: write `[` as `[[]`"))
        };
        let mut found = glob_with(text, AS_SHELL).map_err(of_pattern)?.peekable();
        if absence == Absence::IsError && found.peek().is_none() {
            return Err(ConfigError::input(format!("no file matches {shown}: {of_stars}")).into());
        }
        let base = fixed_part(operand);
        for found in found {
            match found {
                Ok(path) => self.paths.push(NamedPath { path, base: Some(base.clone()) }),
                Err(error) => self.unreadable.push((error.path().to_owned(), error.into())),
            }
        }
        Ok(())
    }
}

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
    use std::os::unix::fs::symlink;

    use super::*;

    fn points_of(operands: &[PathBuf], one_point: bool) -> Result<Vec<CapturePoint>, ArchiveError> {
        capture_points(NamedPaths::of(operands, Absence::IsError)?, one_point)
    }

    #[test]
    fn each_folder_is_a_point_and_each_real_file_is_in_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("taps");
        for below in ["hall", "attic room"] {
            fs::create_dir_all(root.join(below)).unwrap();
        }
        fs::write(root.join("hall/a.1"), "a").unwrap();
        symlink("../hall/a.1", root.join("attic room/again")).unwrap();
        symlink("nowhere", root.join("attic room/lost")).unwrap();
        let hall = root.join("hall");
        let points = points_of(&[root.clone(), hall.clone(), hall.join("a.1")], false).unwrap();
        let names: Vec<_> = points.iter().map(|point| (&*point.name, point.files.clone())).collect();
        let (a, lost) = (root.join("hall/a.1"), root.join("attic room/lost"));
        assert_eq!(names, [("taps+attic%20room", vec![lost.clone()]), ("taps+hall", vec![a.clone()])]);
        let points = points_of(&[root], true).unwrap();
        let names: Vec<_> = points.iter().map(|point| (&*point.name, point.files.clone())).collect();
        assert_eq!(names, [("taps", vec![lost, a])]);
    }

    #[test]
    fn points_of_a_pattern_are_named_from_its_fixed_part() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("taps");
        for below in ["06/hall", "07"] {
            fs::create_dir_all(root.join(below)).unwrap();
        }
        let [hall, day] = ["06/hall/a.pcap", "07/b.pcap"].map(|name| root.join(name));
        for capture in [&hall, &day] {
            fs::write(capture, "a").unwrap();
        }
        symlink("nowhere", root.join("07/lost.pcap")).unwrap();
        fs::write(root.join("07/notes"), "no match").unwrap();
        for pattern in ["**/*.pcap", "0[67]/**/*.pcap"] {
            let points = points_of(&[root.join(pattern)], false).unwrap();
            let names: Vec<_> = points.iter().map(|point| (&*point.name, point.files.clone())).collect();
            let days = vec![day.clone(), root.join("07/lost.pcap")];
            assert_eq!(names, [("taps+06+hall", vec![hall.clone()]), ("taps+07", days)]);
        }
        let points = points_of(&[root.join("06*"), root.join("0?/b*")], true).unwrap();
        let names: Vec<_> = points.iter().map(|point| (&*point.name, point.files.clone())).collect();
        assert_eq!(names, [("taps", vec![hall, day])]);
    }

    #[test]
    fn two_points_of_one_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let homes = ["one/home", "two/home"].map(|name| folder.path().join(name));
        for home in &homes {
            fs::create_dir_all(home).unwrap();
            fs::write(home.join("a"), "a").unwrap();
        }
        let error = points_of(&homes, false).unwrap_err();
        assert!(error.to_string().contains("would both be the capture point `home`"), "{error}");
        let error = points_of(&[folder.path().join("none")], false).unwrap_err();
        assert!(error.to_string().contains("none: No such file"), "{error}");
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let long = |end: &str| point_name(Path::new(&format!("/{}{end}", "x/".repeat(200))), Path::new("/x"));
        assert!(long("a") != long("b") && long("a").len() < 140);
    }

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
        let fault = error(&none, Absence::IsError).to_string();
        assert!(fault.starts_with(&format!("no file matches {}: ", none.display())), "{fault}");
        assert!(NamedPaths::of(&[none], Absence::IsAllowed).unwrap().paths.is_empty());
        for absence in [Absence::IsError, Absence::IsAllowed] {
            let fault = error(&broken, absence).to_string();
            assert!(fault.starts_with(&format!("{}: ", broken.display())) && fault.contains("`[[]`"), "{fault}");
        }
    }
}
