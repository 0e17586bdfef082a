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

mod access;
#[cfg_attr(not(target_os = "linux"), path = "sandbox/calls/absent.rs")]
mod calls;
#[cfg_attr(not(target_os = "linux"), path = "sandbox/files/absent.rs")]
mod files;

pub use access::Access;

use crate::telemetry::log::say;

#[derive(Debug)]
pub struct Sandbox {
    missing: Vec<String>,
}

impl Sandbox {
    /// Limits the files that this thread, and those that it starts from now on, can open.
    pub fn limit_files(access: &Access) -> Self {
        Self { missing: files::limit(access).err().into_iter().collect() }
    }

    /// Takes the system calls from all threads that start programs, open connections or change the system.
    pub fn limit_calls(&mut self) {
        self.missing.extend(calls::limit().err());
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
