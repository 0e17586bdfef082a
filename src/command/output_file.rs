//! Writes results to stdout or to a file.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;

/// Where a result goes.
#[derive(Debug, Args)]
pub(super) struct OutputFile {
    /// Write to FILE instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl OutputFile {
    /// The file, unless it is stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// Opens the file, or stdout.
    pub(super) fn create(&self) -> anyhow::Result<File> {
        match &self.output {
            Some(path) => File::create(path).with_context(|| path.display().to_string()),
            None => Ok(stdout()?),
        }
    }

    /// Writes a complete result.
    pub(super) fn write(&self, result: &[u8]) -> anyhow::Result<()> {
        let Some(path) = &self.output else { return print(result) };
        let written = File::create(path).and_then(|mut file| file.write_all(result));
        written.map_err(|error| anyhow!("{} cannot be written: {error}", path.display()))
    }
}

/// Standard output as a file: the standard library would buffer it by lines.
pub(super) fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Writes a complete result to stdout. It is not an error if the reader is gone.
pub(super) fn print(result: &[u8]) -> anyhow::Result<()> {
    match stdout().and_then(|mut stdout| stdout.write_all(result)) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow!("the output cannot be written: {error}"))
        }
        _ => Ok(()),
    }
}

/// Writes a result to a file, completely or not at all; `-` is stdout. An existing file is replaced in one step;
/// anything that is not a regular file (a pipe, a terminal) is written to.
pub(super) fn replace(path: &Path, result: &[u8]) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        return print(result);
    }
    let name = || path.display().to_string();
    // The target of a link is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if target.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(&target, result).with_context(name);
    }
    replace_file(&target, result).with_context(name)
}

fn replace_file(target: &Path, result: &[u8]) -> io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Like any new file (the umask applies), or like the file that is replaced.
    let permissions = target.metadata().map_or(Permissions::from_mode(0o666), |metadata| metadata.permissions());
    let mut file = tempfile::Builder::new().prefix(".model-").permissions(permissions).tempfile_in(folder)?;
    file.write_all(result)?;
    file.as_file().sync_all()?;
    file.persist(target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn replacing_keeps_links_and_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("model.toml"), folder.path().join("link.toml"));
        symlink(&path, &link).unwrap();
        replace(&path, b"one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&link, b"two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file remains");
    }

    #[test]
    fn device_is_written_to_and_not_replaced() {
        replace(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let error = format!("{:#}", replace(Path::new("no-such-folder/model.toml"), b"x").unwrap_err());
        assert!(error.starts_with("no-such-folder/model.toml: "), "{error}");
    }
}
