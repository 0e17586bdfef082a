//! Captured traffic as a whole, before or beside its commands: what it holds ([`survey`]), what is left of it without its
//! content ([`strip`]), and folders of rotated captures, each of them processed once ([`archive`]).

pub mod archive;
pub mod strip;
pub mod survey;
