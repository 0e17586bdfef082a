//! Takes from a process what it does not need, before it reads what others have written: files (Landlock) and system
//! calls (seccomp).
//!
//! What is taken cannot be got back. Files are limited on the thread that asks for it and on those that it starts, so
//! that comes first; system calls are limited on all threads.
//!
//! ```no_run
//! use sizeleak_platform::sandbox::{Access, Sandbox};
//!
//! let mut access = Access::default();
//! access.read("monday.pcap");
//! access.write_beside("commands.ndjson".as_ref());
//! let sandbox = Sandbox::limit_files(&access);
//! sandbox.complete("record-sizer");
//! ```

#[cfg(target_os = "linux")]
mod calls;

use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

#[cfg(target_os = "linux")]
use calls::limit as restrict_calls;

use crate::storage::{folder_of, target};
use crate::telemetry::log::say;

#[derive(Debug)]
pub struct Sandbox {
    missing: Vec<String>,
}

impl Sandbox {
    /// Limits the files that this thread, and those that it starts from now on, can open.
    pub fn limit_files(access: &Access) -> Self {
        Self { missing: restrict_files(access).err().into_iter().collect() }
    }

    /// Takes the system calls from all threads that start programs, open connections or change the system.
    pub fn limit_calls(&mut self) {
        self.missing.extend(restrict_calls().err());
    }

    /// Limits the system calls of all threads, also of those for metrics, and says once what could not be limited.
    pub fn complete(mut self, speaker: &str) {
        self.limit_calls();
        if let Some(missing) = self.missing() {
            say(speaker, &missing);
        }
    }

    /// What the system could not take, as a sentence; `None` if everything is in force.
    pub fn missing(&self) -> Option<String> {
        (!self.missing.is_empty()).then(|| {
            let missing = self.missing.join("; ");
            format!("the sandbox is not complete: {missing} (with --no-sandbox there is none, and no message)")
        })
    }
}

/// The files that a process opens after it is confined, and whether it ends a program that it has started before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    /// It sends signals to a program that it has started before.
    pub signals_programs: bool,
}

impl Access {
    /// It reads this file, or all files below this folder.
    pub fn read(&mut self, path: impl Into<PathBuf>) {
        self.reads.push(path.into());
    }

    /// It writes this file, an output that is created before: under another name in its folder, or, if it is a link, in that
    /// of its target, which may not be there yet. What is written to directly needs no right once it is open.
    pub fn write_beside(&mut self, file: &Path) {
        let Some(target) = target(file) else { return };
        let mut folders: Vec<PathBuf> = [file, &target].map(|file| folder_of(file).to_owned()).into();
        folders.dedup();
        self.writes.extend(folders);
    }

    pub fn extend(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.signals_programs |= other.signals_programs;
    }
}

#[cfg(target_os = "linux")]
const VERSION: ABI = ABI::V6;

#[cfg(target_os = "linux")]
fn restrict_files(access: &Access) -> Result<(), String> {
    match restrict(access) {
        Ok(RulesetStatus::NotEnforced) => Err("this kernel has no Landlock, so all files can still be opened".into()),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("Landlock fails, so all files can still be opened: {error}")),
    }
}

#[cfg(not(target_os = "linux"))]
fn restrict_calls() -> Result<(), String> {
    Err("this system has no seccomp, so all system calls can still be made".into())
}

#[cfg(not(target_os = "linux"))]
fn restrict_files(_: &Access) -> Result<(), String> {
    Err("this system has no Landlock, so all files can still be opened".into())
}

#[cfg(target_os = "linux")]
fn restrict(access: &Access) -> Result<RulesetStatus, RulesetError> {
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let writing = reading
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
        | AccessFs::MakeDir
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let mut scopes = Scope::from_all(VERSION);
    if access.signals_programs {
        scopes.remove(Scope::Signal);
    }
    let ruleset = ruleset.handle_access(AccessFs::from_all(VERSION))?.scope(scopes)?;
    let mut ruleset = ruleset.create()?;
    let readable = access.reads.iter().map(|path| (path, reading));
    for (path, rights) in readable.chain(access.writes.iter().map(|path| (path, writing))) {
        let Ok(file) = PathFd::new(path) else {
            // What is missing now is an error when it is opened.
            continue;
        };
        let rights: BitFlags<AccessFs> = if path.is_dir() { rights } else { rights & AccessFs::from_file(VERSION) };
        // A pipe without a name takes no rule and needs none.
        let _added = (&mut ruleset).add_rule(PathBeneath::new(file, rights));
    }
    Ok(ruleset.restrict_self()?.ruleset)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

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
        // A link to what is not there yet is written in the folder of that.
        std::fs::remove_file(&target).unwrap();
        let mut access = Access::default();
        access.write_beside(&link);
        assert_eq!(access.writes, [link.parent().unwrap(), target.parent().unwrap()]);
        // Descriptors are open, whatever is behind them.
        let file = std::fs::File::create(&target).unwrap();
        let mut access = Access::default();
        for name in ["/dev/stderr".to_owned(), format!("/proc/self/fd/{}", file.as_raw_fd())] {
            access.write_beside(name.as_ref());
        }
        assert_eq!(access, Access::default());
    }
}
