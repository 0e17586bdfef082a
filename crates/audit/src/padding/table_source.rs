//! A padding table as source code to paste into the sender of commands: sorted sizes and a function that looks them up.

use sizeleak_model::policies::PaddingPolicy;

const COLUMNS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLanguage {
    /// C99, without anything but its headers.
    C,
    /// Rust, without anything but its core library.
    Rust,
}

/// A table in source code; `None` for policies that are no tables. `note` says in a comment what the table was made for.
///
/// The code defines `padded_size`: from the bytes of a message to those that it is padded to, as
/// [`PaddingPolicy::padded`] has it for all sizes.
pub fn table_source(policy: &PaddingPolicy, language: SourceLanguage, note: &str) -> Option<String> {
    let (from, to): (Vec<u64>, Vec<u64>) = match policy {
        PaddingPolicy::Table { buckets } => (buckets.clone(), buckets.clone()),
        PaddingPolicy::Map { sizes } => sizes.iter().map(|[from, to]| (*from, *to)).unzip(),
        _ => return None,
    };
    let greatest = to.iter().max().copied()?;
    // On one line, and no end of a comment.
    let note: String =
        note.chars().map(|letter| if letter.is_control() || letter == '*' { ' ' } else { letter }).collect();
    let count = from.len();
    let mut arrays = vec![("PADDING_SIZES", &from)];
    if from != to {
        arrays.push(("PADDED_SIZES", &to));
    }
    let (found, _) = *arrays.last()?;
    let array = |(name, sizes): (&str, &Vec<u64>)| match language {
        SourceLanguage::C => format!("static const uint64_t {name}[{count}] = {{\n{}}};\n", lines(sizes)),
        SourceLanguage::Rust => format!("const {name}: [u64; {count}] = [\n{}];\n", lines(sizes)),
    };
    let arrays: String = arrays.into_iter().map(array).collect();
    Some(match language {
        SourceLanguage::C => format!(
            "/* {note}\n   padded_size() gives the bytes to pad a message of so many bytes to. Messages that are larger than \
             all sizes\n   of the table are padded to the next multiple of {greatest}. */\n#include <stddef.h>\n\
             #include <stdint.h>\n\n{arrays}\nuint64_t padded_size(uint64_t size)\n{{\n    \
             const uint64_t greatest = UINT64_C({greatest});\n    size_t from = 0, to = {count};\n    \
             while (from < to) {{\n        size_t middle = from + (to - from) / 2;\n        \
             if (PADDING_SIZES[middle] < size) {{\n            from = middle + 1;\n        }} else {{\n            \
             to = middle;\n        }}\n    }}\n    \
             if (from < {count}) {{\n        return {found}[from];\n    }}\n    \
             uint64_t units = size / greatest + (size % greatest != 0);\n    \
             return units > UINT64_MAX / greatest ? UINT64_MAX : units * greatest;\n}}\n"
        ),
        SourceLanguage::Rust => format!(
            "// {note}\n\n{arrays}\n/// The bytes to pad a message of so many bytes to. Messages that are larger than all \
             sizes of the table are\n/// padded to the next multiple of {greatest}.\n\
             pub fn padded_size(size: u64) -> u64 {{\n    \
             match {found}.get(PADDING_SIZES.partition_point(|known| *known < size)) {{\n        \
             Some(padded) => *padded,\n        \
             None => size.checked_next_multiple_of({greatest}).unwrap_or(u64::MAX),\n    }}\n}}\n"
        ),
    })
}

/// Sizes with commas, on lines that are not too long.
fn lines(sizes: &[u64]) -> String {
    let (mut text, mut line) = (String::new(), String::from("   "));
    for size in sizes {
        let item = format!(" {size},");
        if line.len() + item.len() > COLUMNS {
            text += &line;
            text.push('\n');
            line = String::from("   ");
        }
        line += &item;
    }
    text + &line + "\n"
}
