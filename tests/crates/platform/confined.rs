//! What a confined process can still do. Each test confines a process of its own: what is given up cannot be got back.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use sizeleak_platform::sandbox::{Access, Sandbox};
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
