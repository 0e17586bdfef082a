//! The files in folders: which of them may be captures.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub struct FolderContent {
    /// Regular files, and links to such or to nothing, in order of their paths.
    pub files: Vec<PathBuf>,
    /// Named pipes, sockets and devices, and links to them: reading one may never end. In order of their paths.
    pub special: Vec<SpecialFile>,
    pub unreadable: Vec<(PathBuf, io::Error)>,
}

/// A file without content of its own.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpecialFile {
    pub path: PathBuf,
    /// What it is, for people.
    pub kind: &'static str,
}

/// All that is below a folder. Links to folders are not followed: they may form loops.
pub fn content_below(folder: &Path) -> FolderContent {
    let mut content = FolderContent::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if let Err(error) = content.add_entries(&folder, &mut folders) {
            content.unreadable.push((folder, error));
        }
    }
    content.files.sort();
    content.special.sort();
    content.unreadable.sort_by(|one, other| one.0.cmp(&other.0));
    content
}

impl FolderContent {
    fn add_entries(&mut self, folder: &Path, folders: &mut Vec<PathBuf>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            // A link to nothing is a file that cannot be opened.
            let target =
                if kind.is_symlink() { fs::metadata(&path).ok().map(|target| target.file_type()) } else { Some(kind) };
            match target {
                Some(target) if target.is_dir() => {}
                Some(target) if special_kind(target).is_some() => {
                    let kind = special_kind(target).unwrap_or_default();
                    self.special.push(SpecialFile { path, kind });
                }
                _ => self.files.push(path),
            }
        }
        Ok(())
    }
}

fn special_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else {
        None
    }
}

/// Whether the name of a file says that it is a capture: `.pcap` or `.pcapng`, also compressed or numbered
/// (`home.pcap.gz`, `home.pcap3`).
pub fn is_named_capture(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().to_ascii_lowercase().contains(".pcap"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn pipes_sockets_and_devices_are_apart_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("below")).unwrap();
        fs::write(path("below/b.pcap"), "").unwrap();
        fs::write(path("a.pcap"), "").unwrap();
        mknodat(CWD, path("pipe.pcap"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _listener = UnixListener::bind(path("socket")).unwrap();
        symlink("/dev/zero", path("zero.pcap")).unwrap();
        symlink("nowhere", path("lost")).unwrap();
        symlink(".", path("loop")).unwrap();
        let content = content_below(folder.path());
        assert_eq!(content.files, ["a.pcap", "below/b.pcap", "lost"].map(path));
        let special: Vec<_> = content.special.iter().map(|special| (special.path.clone(), special.kind)).collect();
        let expected = [("pipe.pcap", "a named pipe"), ("socket", "a socket"), ("zero.pcap", "a device")];
        assert_eq!(special, expected.map(|(name, kind)| (path(name), kind)));
        assert!(content.unreadable.is_empty());
        assert_eq!(content_below(&path("gone")).unreadable.len(), 1);
    }

    #[test]
    fn captures_are_recognised_by_name() {
        for (name, is_capture) in
            [("a.pcap", true), ("a.PCAPNG.gz", true), ("a.pcap07", true), ("pcap", false), ("a.txt", false)]
        {
            assert_eq!(is_named_capture(Path::new(name)), is_capture, "{name}");
        }
    }
}
