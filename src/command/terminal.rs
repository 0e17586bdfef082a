//! How wide a terminal is.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use terminal_size::{Width, terminal_size_of};

use super::document::COLUMNS;

/// The columns of what goes to stdout.
pub(super) fn stdout_columns() -> usize {
    columns(&io::stdout())
}

/// The columns of what goes to stderr.
pub(super) fn stderr_columns() -> usize {
    columns(&io::stderr())
}

fn columns(stream: &(impl IsTerminal + AsFd)) -> usize {
    let terminal = stream.is_terminal().then(|| terminal_size_of(stream)).flatten();
    terminal.map_or(COLUMNS, |(Width(columns), _)| usize::from(columns).max(MIN_COLUMNS))
}

/// Narrower terminals break lines themselves: words of a table would be cut.
const MIN_COLUMNS: usize = 40;
