//! Root is left on Linux only.

use thiserror::Error;

/// The user that a process of root becomes: here there is none.
#[derive(Debug)]
pub enum LesserUser {}

/// Why root cannot be left.
#[derive(Debug, Error)]
pub enum UserError {}

impl LesserUser {
    /// Always `None`.
    ///
    /// # Errors
    /// None.
    pub fn of_root() -> Result<Option<Self>, UserError> {
        Ok(None)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// The numbers of the user and of its group.
    pub fn ids(&self) -> (u32, u32) {
        match *self {}
    }

    /// Becomes this user.
    ///
    /// # Errors
    /// None.
    pub fn enter(&self) -> Result<(), UserError> {
        match *self {}
    }
}

/// Gives up nothing.
///
/// # Errors
/// None.
pub fn give_up_capabilities() -> Result<(), UserError> {
    Ok(())
}
