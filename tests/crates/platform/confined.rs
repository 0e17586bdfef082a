//! What a confined process can still do. Each test confines a process of its own: what is given up cannot be got back.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use sizeleak_platform::sandbox::{Access, LesserUser, Sandbox, give_up_capabilities};
use support::apart;

fn status(key: &str) -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned()
}

#[test]
fn confined_process_opens_only_what_was_named() {
    if apart::is_here() {
        return opens_what_was_named();
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["outputs", "captures", "other"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("file"), "content").unwrap();
    }
    fs::write(folder.path().join("named"), "content").unwrap();
    fs::write(folder.path().join("unnamed"), "content").unwrap();
    apart::run(module_path!(), "confined_process_opens_only_what_was_named", folder.path());
    assert_eq!(fs::read_to_string(folder.path().join("outputs/new")).unwrap(), "new");
}

fn opens_what_was_named() {
    let mut access = Access::default();
    access.read("named");
    access.read("captures");
    access.read("absent");
    access.write_beside(Path::new("outputs/new"));
    let mut sandbox = Sandbox::limit_files(&access);
    assert_eq!(sandbox.missing(), None);
    for readable in ["named", "captures/file", "outputs/file"] {
        fs::read(readable).unwrap();
    }
    fs::write("outputs/.new", "new").unwrap();
    fs::rename("outputs/.new", "outputs/new").unwrap();
    fs::create_dir("outputs/folder").unwrap();
    let denied = |result: Result<(), std::io::Error>, what: &str| {
        assert_eq!(result.expect_err(what).kind(), ErrorKind::PermissionDenied, "{what}");
    };
    for unreadable in ["unnamed", "other/file", "/etc/passwd", "/proc/self/environ"] {
        denied(File::open(unreadable).map(drop), unreadable);
        denied(thread::spawn(move || File::open(unreadable).map(drop)).join().unwrap(), unreadable);
    }
    for unwritable in ["named", "captures/new", "new"] {
        denied(File::options().append(true).create(true).open(unwritable).map(drop), unwritable);
    }
    denied(fs::remove_file("captures/file"), "removing");
    denied(fs::rename("named", "outputs/named"), "moving");
    sandbox.limit_calls();
    assert_eq!(sandbox.missing(), None);
}

#[test]
fn confined_process_starts_no_program_and_opens_no_connection() {
    if apart::is_here() {
        return starts_and_connects_nothing();
    }
    let folder = tempfile::tempdir().unwrap();
    apart::run(module_path!(), "confined_process_starts_no_program_and_opens_no_connection", folder.path());
}

fn starts_and_connects_nothing() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    let mut access = Access::default();
    access.read("/");
    let (begin, begins) = mpsc::channel::<()>();
    // Also threads that were there before.
    let before = thread::spawn(move || {
        begins.recv().unwrap();
        (status("Seccomp:"), status("NoNewPrivs:"), Command::new("true").status().is_err())
    });
    let mut sandbox = Sandbox::limit_files(&access);
    sandbox.limit_calls();
    assert_eq!(sandbox.missing(), None);
    begin.send(()).unwrap();
    assert_eq!(before.join().unwrap(), ("2".to_owned(), "1".to_owned(), true));
    for denied in [
        Command::new("true").status().map(drop),
        TcpStream::connect(address).map(drop),
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map(drop),
    ] {
        assert_eq!(denied.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    // What was open stays so, and threads can be started.
    let mut served = listener.accept().unwrap().0;
    client.write_all(b"x").unwrap();
    let read = thread::spawn(move || served.read(&mut [0; 8]).unwrap());
    assert_eq!(read.join().unwrap(), 1);
}

#[test]
#[ignore = "second tier: needs root"]
fn root_is_left_for_good() {
    if apart::is_here() {
        return leaves_root();
    }
    let folder = tempfile::tempdir().unwrap();
    apart::run(module_path!(), "root_is_left_for_good", folder.path());
}

fn leaves_root() {
    let user = LesserUser::of_root().unwrap().unwrap();
    let (uid, gid) = user.ids();
    assert!(user.name() == "nobody" && uid != 0 && gid != 0);
    let mut access = Access::default();
    access.write_in(Path::new("."));
    access.check_folders(user.name()).unwrap();
    let before = thread::spawn(thread::park);
    user.enter().unwrap();
    give_up_capabilities().unwrap();
    for ids in [status("Uid:"), status("Gid:")] {
        assert!(ids.split_whitespace().all(|id| id == uid.to_string() || id == gid.to_string()), "{ids}");
    }
    assert_eq!(status("Groups:"), gid.to_string());
    for capabilities in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(status(capabilities), "0000000000000000", "{capabilities}");
    }
    // The user is that of all threads.
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("status"));
    for task in tasks {
        let status = fs::read_to_string(&task).unwrap();
        assert!(status.lines().any(|line| line.starts_with(&format!("Uid:\t{uid}\t{uid}\t{uid}"))), "{status}");
    }
    assert!(user.enter().is_err(), "it was root once only");
    let error = access.check_folders(user.name()).unwrap_err().to_string();
    assert!(error.contains("cannot be written by nobody"), "{error}");
    before.thread().unpark();
    before.join().unwrap();
}
