//! What git tracks of a tree, what was changed since, and what the tree's own checks say of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Git in a folder, without the user's settings.
fn git(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// The paths that a command of git lists.
fn listed(folder: &Path, arguments: &[&str]) -> Vec<String> {
    let output = git(folder, arguments).output().ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8(output.stdout).unwrap()).unwrap_or_default();
    let mut paths: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Makes a folder a repository that tracks all that is in it.
pub fn add_all(folder: &Path) {
    for arguments in [&["init", "--quiet"][..], &["add", "--all"]] {
        assert!(git(folder, arguments).status().unwrap().success(), "git {arguments:?}");
    }
}

/// The files that were added, changed or removed since the repository has tracked them; not those that it ignores.
pub fn changes(folder: &Path) -> Vec<String> {
    listed(folder, &["ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard"])
}

/// The files of a folder that git tracks; all of them where there is no repository.
fn tracked(folder: &Path) -> Vec<PathBuf> {
    let tracked: Vec<PathBuf> = listed(folder, &["ls-files", "-z"]).iter().map(|name| folder.join(name)).collect();
    if !tracked.is_empty() {
        return tracked;
    }
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
}

/// Checks that the bundled home is small, and that its README names every file.
pub fn assert_home_is_described(tree: &Path) {
    let folder = tree.join("examples/home");
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let mut bytes = 0;
    for file in tracked(&folder) {
        bytes += file.metadata().unwrap().len();
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(name == "README.md" || readme.contains(&format!("`{name}`")), "{name}");
    }
    assert!((300_000..1_000_000).contains(&bytes), "{bytes} bytes");
}
