//! The `sizeleak` program.
fn main() {}
