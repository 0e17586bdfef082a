//! Leaves root once a live capture is open.

use std::env;

use nix::errno::Errno;
use nix::unistd::{Gid, Uid, User, geteuid, setgroups, setresgid, setresuid};
use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities};
use thiserror::Error;

/// The user that a process of root becomes: who called `sudo`, else `nobody`.
#[derive(Debug)]
pub struct LesserUser {
    name: String,
    uid: Uid,
    gid: Gid,
}

/// Why root cannot be left.
#[derive(Debug, Error)]
pub enum UserError {
    /// There is nobody else.
    #[error("root cannot be left, since there is no user `nobody`: keep root with --no-sandbox")]
    Nobody,
    /// The system refuses.
    #[error("root cannot be left for {user}: {source}; keep root with --no-sandbox")]
    Refused {
        /// The user.
        user: String,
        /// The system's error.
        source: Errno,
    },
    /// Capabilities remain.
    #[error("capabilities cannot be given up: {0}; keep them with --no-sandbox")]
    Capabilities(rustix::io::Errno),
}

impl LesserUser {
    /// The user to become; `None` unless this process is one of root.
    ///
    /// # Errors
    /// [`UserError::Nobody`].
    pub fn of_root() -> Result<Option<Self>, UserError> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let number = |name: &str| env::var(name).ok()?.parse().ok().filter(|id: &u32| *id != 0);
        if let (Some(uid), Some(gid)) = (number("SUDO_UID"), number("SUDO_GID")) {
            let name = env::var("SUDO_USER").unwrap_or_else(|_| format!("user {uid}"));
            return Ok(Some(Self { name, uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) }));
        }
        let nobody = User::from_name("nobody").ok().flatten().filter(|nobody| !nobody.uid.is_root());
        let nobody = nobody.ok_or(UserError::Nobody)?;
        Ok(Some(Self { name: nobody.name, uid: nobody.uid, gid: nobody.gid }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The numbers of the user and of its group, for files that it is to own.
    pub fn ids(&self) -> (u32, u32) {
        (self.uid.as_raw(), self.gid.as_raw())
    }

    /// Becomes this user, for good.
    ///
    /// # Errors
    /// [`UserError::Refused`]: then the process must not go on.
    pub fn enter(&self) -> Result<(), UserError> {
        let Self { uid, gid, .. } = *self;
        let left = setgroups(&[gid])
            .and_then(|()| setresgid(gid, gid, gid))
            .and_then(|()| setresuid(uid, uid, uid))
            .and_then(|()| {
                if setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0)).is_ok() {
                    Err(Errno::EPERM)
                } else {
                    Ok(())
                }
            });
        left.map_err(|source| UserError::Refused { user: self.name.clone(), source })
    }
}

/// Gives up the capabilities that this thread still has, such as those of a program file, and passes none on.
///
/// # Errors
/// [`UserError::Capabilities`].
pub fn give_up_capabilities() -> Result<(), UserError> {
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    let given_up = clear_ambient_capability_set().and_then(|()| set_capabilities(None, sets));
    given_up.map_err(UserError::Capabilities)
}
