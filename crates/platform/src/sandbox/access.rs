//! What a process opens after it is confined.

use std::path::{Path, PathBuf};

/// The files that a process opens after it is confined, and whether it ends a program that it has started before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    pub(crate) reads: Vec<PathBuf>,
    pub(crate) writes: Vec<PathBuf>,
    /// It sends signals to a program that it has started before.
    pub signals_programs: bool,
}

impl Access {
    /// It reads this file, or all files below this folder.
    pub fn read(&mut self, path: impl Into<PathBuf>) {
        self.reads.push(path.into());
    }

    /// It writes this file: under another name in its folder, or, if it is a link, in that of its target.
    pub fn write_beside(&mut self, file: &Path) {
        for file in [Some(file.to_owned()), file.canonicalize().ok()].into_iter().flatten() {
            let is_special = file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
            // A pipe or a device is opened before.
            if !is_special && let Some(folder) = file.parent() {
                self.writes.push(if folder == Path::new("") { ".".into() } else { folder.to_owned() });
            }
        }
    }

    pub fn extend(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.signals_programs |= other.signals_programs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_written_in_their_folder_and_in_that_of_a_links_target() {
        let folder = tempfile::tempdir().unwrap();
        let [target, link] = ["inner/target", "link"].map(|name| folder.path().join(name));
        std::fs::create_dir(target.parent().unwrap()).unwrap();
        std::fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut access = Access::default();
        access.write_beside(&link);
        assert_eq!(access.writes, [link.parent().unwrap(), target.canonicalize().unwrap().parent().unwrap()]);
        let mut access = Access::default();
        access.write_beside(Path::new("new.csv"));
        access.write_beside(Path::new("/dev/null"));
        assert_eq!(access.writes, [Path::new(".")]);
    }
}
