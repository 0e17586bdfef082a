//! Reads `docs/frames.md`: its sections, tables and blocks of code; and writes values as it does.

use rmpv::Value;
use sizeleak_frame::FlowId;

const DOCUMENT: &str = include_str!("../../../docs/frames.md");

/// A row of a table of fields.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) nullable: bool,
}

/// The text of the chapter whose heading begins so.
pub(crate) fn chapter(heading: &str) -> String {
    below(&format!("\n## {heading}"), &["\n## "])
}

/// The text of the section about a kind, or a list in one; without the sections inside it.
pub(crate) fn section(name: &str) -> String {
    let level = if name.contains('.') { "####" } else { "###" };
    below(&format!("\n{level} `{name}`\n"), &["\n## ", "\n### ", "\n#### "])
}

fn below(heading: &str, ends: &[&str]) -> String {
    let (_, text) = DOCUMENT.split_once(heading).unwrap_or_else(|| panic!("the document has no heading {heading:?}"));
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text[..end].to_owned()
}

/// The cells of the rows whose first cell is code.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

fn code_of(cell: &str) -> String {
    cell.trim_matches('`').to_owned()
}

/// The fields in the table of a section.
pub(crate) fn table(text: &str) -> Vec<Field> {
    let field = |cells: Vec<&str>| {
        let [name, kind, meaning] = cells[..] else { panic!("a field has a name, a type and a meaning: {cells:?}") };
        assert!(!meaning.is_empty(), "{name} has no meaning");
        let nullable = kind.strip_suffix(" or null");
        Field { name: code_of(name), kind: nullable.unwrap_or(kind).to_owned(), nullable: nullable.is_some() }
    };
    rows(text).map(field).collect()
}

/// The words in the table of notices.
pub(crate) fn words() -> Vec<String> {
    rows(&chapter("4. Notices")).map(|cells| code_of(cells[0])).collect()
}

/// The only block of code in this language.
pub(crate) fn code(language: &str) -> String {
    let fence = format!("\n```{language}\n");
    let blocks: Vec<&str> = DOCUMENT.split(&fence).skip(1).collect();
    let [block] = blocks[..] else { panic!("{} blocks of {language}", blocks.len()) };
    block.split_once("\n```").unwrap().0.to_owned()
}

/// A value as JSON, binary data as hexadecimal digits, a flow as text.
pub(crate) fn json(value: &Value) -> String {
    let list = |values: Vec<String>| values.join(",");
    match value {
        Value::Map(entries) => {
            let entry = |(name, value): &(Value, Value)| match (name.as_str(), value.as_u64()) {
                (Some("flow"), Some(flow)) => format!("\"flow\":\"{}\"", FlowId(flow)),
                _ => format!("{}:{}", json(name), json(value)),
            };
            format!("{{{}}}", list(entries.iter().map(entry).collect()))
        }
        Value::Array(values) => format!("[{}]", list(values.iter().map(json).collect())),
        Value::Binary(bytes) => {
            format!("\"{}\"", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat())
        }
        other => other.to_string(),
    }
}

/// The meaning of bytes, marker by marker, in the words of the worked stream.
pub(crate) fn tokens(mut bytes: &[u8]) -> String {
    let mut tokens = Vec::new();
    while let Some((&marker, rest)) = bytes.split_first() {
        let count = marker & 0x0f;
        tokens.push(match marker {
            0x80..=0x9f => {
                bytes = rest;
                if marker < 0x90 { format!("map {count}") } else { format!("list {count}") }
            }
            _ => match rmpv::decode::read_value(&mut bytes).unwrap() {
                Value::Binary(data) => format!("bin {}", data.len()),
                value => value.to_string(),
            },
        });
    }
    tokens.join(" ")
}
