//! Puts a model where it is wanted: whole or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

/// Writes a text to a file, `-` for stdout. A file is replaced by a whole new one in one step; where something else than
/// a file is there (a pipe, a terminal), it is written to.
pub(super) fn write(text: &str, path: &Path) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        return match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("stdout"),
            _ => Ok(()),
        };
    }
    let name = || path.display().to_string();
    // What a link points to is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if target.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(&target, text).with_context(name);
    }
    replace(text, &target).with_context(name)
}

fn replace(text: &str, target: &Path) -> io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any new file, to be narrowed by the process's mask; as the old one where there is one.
    let permissions = target.metadata().map_or(Permissions::from_mode(0o666), |metadata| metadata.permissions());
    let mut file = tempfile::Builder::new().prefix(".model-").permissions(permissions).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("model.toml"), folder.path().join("link.toml"));
        symlink(&path, &link).unwrap();
        write("one", &path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write("two", &link).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_no_file_is_written_to() {
        write("gone", Path::new("/dev/null")).unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let error = format!("{:#}", write("x", Path::new("no-such-folder/model.toml")).unwrap_err());
        assert!(error.starts_with("no-such-folder/model.toml: "), "{error}");
    }
}
