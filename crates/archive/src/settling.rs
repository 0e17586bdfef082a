//! Files that may still be growing, and are left for a later call.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::capture_file::{CaptureFile, FileVerdict};

/// How long files have been left alone before they are read, seen from one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settling {
    time: Duration,
    now: SystemTime,
}

impl Settling {
    /// Files that are left alone for this time, from now on backwards. With none, every file has settled.
    pub(crate) fn since(time: Duration) -> Self {
        Self { time, now: SystemTime::now() }
    }

    /// The file, if it may be growing. What cannot be looked at is not.
    pub(crate) fn growing(&self, path: &Path) -> Option<CaptureFile> {
        if self.time.is_zero() {
            return None;
        }
        let metadata = path.metadata().ok()?;
        let modified = metadata.modified().ok()?;
        let reason = match self.now.duration_since(modified) {
            Ok(age) if age >= self.time => return None,
            // Clocks of file servers differ a little.
            _ if modified <= self.now + self.time => {
                let seconds = self.time.as_secs_f64();
                format!("was modified within {seconds} s and may be growing: a later call reads it")
            }
            _ => "was modified in the future, by the clock of this machine: it is read once that time has passed, \
                  after `touch`, or with `--settle 0s`"
                .to_owned(),
        };
        let file = CaptureFile::unread(path, FileVerdict::Growing, reason);
        Some(CaptureFile { bytes: Some(metadata.len()), ..file })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn files_are_growing_until_they_are_left_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let modified = |time: SystemTime| File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
        let settling = Settling::since(Duration::from_secs(30));
        let second = Duration::from_secs(1);
        let reason = || settling.growing(file.path()).map(|growing| growing.reason.unwrap());
        modified(settling.now - 29 * second);
        assert_eq!(reason().unwrap(), "was modified within 30 s and may be growing: a later call reads it");
        modified(settling.now - 30 * second);
        assert_eq!(reason(), None);
        modified(settling.now + 20 * second);
        assert!(reason().unwrap().contains("within"));
        modified(settling.now + 90 * second);
        assert!(reason().unwrap().contains("in the future"));
        assert!(Settling::since(Duration::ZERO).growing(file.path()).is_none());
        assert!(settling.growing(Path::new("/nowhere/at/all")).is_none());
    }
}
