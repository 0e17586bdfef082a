//! The actions that add up to a command's size.
