//! Writes a table of sizes as a frame stream: `sizes TABLE.sizes.csv > TABLE.frames`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "its input is a table of this repository")]

use std::io::{self, BufWriter};
use std::path::Path;

use support::size_table::SizeTable;

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: sizes TABLE.sizes.csv > TABLE.frames");
        std::process::exit(2);
    };
    SizeTable::read(Path::new(&path)).write(BufWriter::new(io::stdout().lock()));
}
