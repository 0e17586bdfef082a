//! Tests of `pending_file`: a file system that loses what was not synced, and one whose operations fail.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;

use super::*;

const OLD: &[u8] = b"the earlier content, which is longer";
const NEW: &[u8] = b"what replaces it";

/// A change that a power cut may lose.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Link { name: PathBuf, inode: usize },
    Move { from: PathBuf, to: PathBuf },
    Unlink { name: PathBuf },
}

/// A disk with a cache before it. Names reach the disk in order; bytes of a file reach it at any time.
#[derive(Debug, Default)]
struct State {
    /// The written bytes of each file, and how many of them are certainly on the disk.
    files: Vec<(Vec<u8>, usize)>,
    changes: Vec<Change>,
    /// How many changes of names are certainly on the disk.
    synced_changes: usize,
    /// After this many operations the power is cut.
    operations_left: usize,
}

#[derive(Debug, Clone, Default)]
struct SimulatedDisk(Rc<RefCell<State>>);

struct SimulatedFile {
    disk: SimulatedDisk,
    inode: usize,
}

impl SimulatedDisk {
    /// A disk that holds the earlier content, and whose power is cut after this many operations.
    fn with_old_content(operations_left: usize) -> Self {
        let link = Change::Link { name: PathBuf::from("target"), inode: 0 };
        let files = vec![(OLD.to_vec(), OLD.len())];
        Self(Rc::new(RefCell::new(State { files, changes: vec![link], synced_changes: 1, operations_left })))
    }

    /// Performs an operation, unless the power is cut.
    fn perform<T>(&self, operation: impl FnOnce(&mut State) -> T) -> io::Result<T> {
        let mut state = self.0.borrow_mut();
        state.operations_left =
            state.operations_left.checked_sub(1).ok_or_else(|| io::Error::other("the power is cut"))?;
        Ok(operation(&mut state))
    }

    /// Everything that the target may hold after the power is cut now; `None` is no file.
    fn possible_targets(&self) -> Vec<Option<Vec<u8>>> {
        let state = self.0.borrow();
        let mut possible = Vec::new();
        for survived in state.synced_changes..=state.changes.len() {
            let mut names: BTreeMap<&Path, usize> = BTreeMap::new();
            for change in &state.changes[..survived] {
                match change {
                    Change::Link { name, inode } => _ = names.insert(name, *inode),
                    Change::Move { from, to } => {
                        let inode = names.remove(&**from).unwrap();
                        names.insert(to, inode);
                    }
                    Change::Unlink { name } => _ = names.remove(&**name),
                }
            }
            match names.get(Path::new("target")) {
                None => possible.push(None),
                Some(inode) => {
                    let (bytes, synced) = &state.files[*inode];
                    possible.extend((*synced..=bytes.len()).map(|length| Some(bytes[..length].to_vec())));
                    // A block that was allocated but not written.
                    possible.extend((*synced < bytes.len()).then(|| Some(vec![0; bytes.len()])));
                }
            }
        }
        possible
    }
}

impl Write for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Any write may be a short one.
        let taken = bytes.len().min(5);
        self.disk.perform(|state| {
            state.files[self.inode].0.extend(&bytes[..taken]);
            taken
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileSystem for SimulatedDisk {
    type File = SimulatedFile;

    fn create(&self, path: &Path, _: &Path) -> io::Result<SimulatedFile> {
        let inode = self.perform(|state| {
            state.files.push((Vec::new(), 0));
            let inode = state.files.len() - 1;
            state.changes.push(Change::Link { name: plain(path), inode });
            inode
        })?;
        Ok(SimulatedFile { disk: self.clone(), inode })
    }

    fn sync(&self, file: &SimulatedFile) -> io::Result<()> {
        self.perform(|state| {
            let (bytes, synced) = &mut state.files[file.inode];
            *synced = bytes.len();
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.perform(|state| state.changes.push(Change::Move { from: plain(from), to: plain(to) }))
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.perform(|state| state.synced_changes = state.changes.len())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.perform(|state| state.changes.push(Change::Unlink { name: plain(path) }))
    }
}

fn plain(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

/// Replaces the target; returns whether that was reported as done.
fn replace_on(disk: &SimulatedDisk, durability: Durability) -> bool {
    let replaced = PendingFile::create_on(disk.clone(), Path::new("target"), durability).and_then(|mut pending| {
        pending.file().write_all(NEW)?;
        pending.keep()
    });
    replaced.is_ok()
}

/// The contents that a power cut at any point may leave.
fn possible_after_cuts(durability: Durability) -> Vec<Option<Vec<u8>>> {
    let mut all = Vec::new();
    for operations in 0.. {
        let disk = SimulatedDisk::with_old_content(operations);
        let is_done = replace_on(&disk, durability);
        let possible = disk.possible_targets();
        if is_done && durability == Durability::Lasting {
            assert!(possible.iter().all(|content| content.as_deref() == Some(NEW)), "reported too early");
        }
        all.extend(possible);
        if is_done {
            break;
        }
    }
    all
}

#[test]
fn power_cut_at_any_point_leaves_the_whole_old_or_the_whole_new_content() {
    let possible = possible_after_cuts(Durability::Lasting);
    for content in &possible {
        assert!(matches!(content.as_deref(), Some(OLD | NEW)), "{content:?}");
    }
    assert!(possible.iter().any(|content| content.as_deref() == Some(OLD)));
}

#[test]
fn without_syncs_a_power_cut_can_leave_a_part() {
    // Otherwise the simulation would lose nothing, and the test above could not fail.
    let possible = possible_after_cuts(Durability::Disposable);
    assert!(possible.iter().any(|content| !matches!(content.as_deref(), Some(OLD | NEW))));
}

/// A disk one of whose operations fails, as when it is full.
struct FullDisk {
    failing: &'static str,
}

impl FullDisk {
    fn perform<T>(&self, operation: &str, perform: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if operation == self.failing { Err(ErrorKind::StorageFull.into()) } else { perform() }
    }
}

impl FileSystem for FullDisk {
    type File = std::fs::File;

    fn create(&self, path: &Path, replaced: &Path) -> io::Result<Self::File> {
        self.perform("create", || Disk.create(path, replaced))
    }

    fn sync(&self, file: &Self::File) -> io::Result<()> {
        self.perform("sync", || Disk.sync(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.perform("rename", || Disk.rename(from, to))
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.perform("sync_folder", || Disk.sync_folder(folder))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }
}

#[test]
fn failed_operation_leaves_the_earlier_file_and_nothing_else() {
    for failing in ["create", "sync", "rename"] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::fs::write(&target, OLD).unwrap();
        let pending = PendingFile::create_on(FullDisk { failing }, &target, Durability::Lasting);
        let kept = pending.and_then(|mut pending| pending.file().write_all(NEW).and_then(|()| pending.keep()));
        assert_eq!(kept.unwrap_err().kind(), ErrorKind::StorageFull, "{failing}");
        assert_eq!(std::fs::read(&target).unwrap(), OLD, "{failing}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{failing}");
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let system = FullDisk { failing: "sync_folder" };
    let pending = PendingFile::create_on(system, &target, Durability::Lasting).unwrap();
    assert!(pending.keep().is_err(), "what may be lost is not reported as done");
}

#[test]
fn longest_name_and_taken_temporary_names_are_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("ä".repeat(127) + "x");
    for _ in 0..3 {
        PendingFile::create(&target, Durability::Lasting).unwrap().keep().unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let pending = PendingFile::create(&folder.path().join("next"), Durability::Lasting).unwrap();
    let number: u32 = pending.temporary.as_ref().unwrap().extension().unwrap().to_str().unwrap()
        [format!("{}-", process::id()).len()..]
        .parse()
        .unwrap();
    for next in number + 1..number + 200 {
        let left = format!(".other.{}-{next}", process::id());
        std::fs::write(folder.path().join(left), "left by a killed process").unwrap();
    }
    let other = PendingFile::create(&folder.path().join("other"), Durability::Lasting).unwrap();
    other.keep().unwrap();
    assert_eq!(std::fs::read(folder.path().join("other")).unwrap(), b"");
}
