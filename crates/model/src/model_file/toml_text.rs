//! The parts of a model as TOML that people read: comments, and a line for each entry.

use std::fmt::Write as _;

use serde::Serialize;

use crate::{Kinds, SingleReplies};

pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

pub(super) fn write_kinds(text: &mut String, parent: &str, kinds: &Kinds) -> std::fmt::Result {
    text.push_str(
        "\n# Labelled commands whose parts the labels do not separate. Deviation of sizes in bytes; the share of \
         commands\n# that are none of them; what replies tell.\n",
    );
    write!(text, "[{parent}kinds]\nspread = {:?}\nother = {:?}\n", kinds.spread, kinds.other)?;
    if let Some(replies) = &kinds.replies {
        writeln!(text, "replies = {{ spread = {:?}, strength = {:?} }}", replies.spread, replies.strength)?;
    }
    for kind in &kinds.list {
        let actions: Vec<String> =
            kind.actions.iter().map(|(name, count)| format!("[{}, {count}]", quoted(name))).collect();
        writeln!(text, "\n[[{parent}kinds.kind]]\nactions = [{}]", actions.join(", "))?;
        text.push_str("# [size, replies, bytes of replies, how many labelled commands]\nseen = [\n");
        for seen in &kind.seen {
            writeln!(text, "    [{}, {}, {}, {}],", seen.size, seen.replies, seen.reply_bytes, seen.times)?;
        }
        text.push_str("]\n");
    }
    Ok(())
}

pub(super) fn write_single_replies(text: &mut String, parent: &str, single: &SingleReplies) -> std::fmt::Result {
    text.push_str(
        "\n# Single replies: the share in the same record as the one before and the bytes these\n# share with it, foreign records for each command, and \
         how many\n# replies of each class a command has as such and for each action, in the order above.\n",
    );
    let SingleReplies { merged, shared, foreign, foreign_sizes, per_command, per_action, classes } = single;
    write!(text, "[{parent}single_replies]\nmerged = {merged:?}\nshared = {shared}\nforeign = {foreign:?}\n")?;
    writeln!(text, "foreign_sizes = {}", pairs(foreign_sizes))?;
    write!(text, "per_command = {per_command:?}\nper_action = {per_action:?}\n")?;
    text.push_str(
        "# The share missing, the share of sizes not seen yet, and [size, how often] of each class.\nclass = [\n",
    );
    for class in classes {
        let sizes = pairs(&class.sizes);
        writeln!(text, "    {{ missing = {:?}, unseen = {:?}, sizes = {sizes} }},", class.missing, class.unseen)?;
    }
    text.push_str("]\n");
    Ok(())
}

/// `[[size, times], …]`.
fn pairs(sizes: &[(i64, u64)]) -> String {
    let pairs: Vec<String> = sizes.iter().map(|(size, times)| format!("[{size}, {times}]")).collect();
    format!("[{}]", pairs.join(", "))
}

/// Writes a part of the model as a table. The parts are plain data, which TOML can always represent.
pub(super) fn write_table(text: &mut String, parent: &str, name: &str, part: &impl Serialize) {
    let mut value = toml::Value::try_from(part).unwrap_or_else(|_| toml::Value::Table(toml::Table::new()));
    for name in [name].into_iter().chain(parent.split_terminator('.').rev()) {
        value = toml::Value::Table(toml::Table::from_iter([(name.to_owned(), value)]));
    }
    *text += &value.as_table().map_or_else(String::new, toml::Table::to_string);
}
