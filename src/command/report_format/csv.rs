//! A report as comma-separated values.

use serde_json::Value;

/// The entries of the list at `rows` as rows, with a column for each of their figures. Without such a list, a row for each
/// figure of the report.
pub(super) fn written(report: &Value, rows: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let list = rows.map_or(Some(report), |key| report.get(key)).and_then(Value::as_array);
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let Some(rows) = list else {
        writer.write_record(["figure", "value"])?;
        figures(report).iter().try_for_each(|(name, value)| writer.write_record([name, value]))?;
        return Ok(writer.into_inner()?);
    };
    let rows: Vec<Vec<(String, String)>> = rows.iter().map(figures).collect();
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    writer.write_record(&columns)?;
    for row in &rows {
        let cell = |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value);
        writer.write_record(columns.iter().map(cell))?;
    }
    Ok(writer.into_inner()?)
}

/// All figures below a value with the keys that lead to them.
fn figures(value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    add(value, &mut String::new(), &mut found);
    found
}

fn add(value: &Value, path: &mut String, found: &mut Vec<(String, String)>) {
    let mut below = |key: &str, value: &Value| {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(key);
        add(value, path, found);
        path.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(entries) => (0..).zip(entries).for_each(|(at, entry): (usize, _)| below(&at.to_string(), entry)),
        Value::Null => found.push((path.clone(), String::new())),
        // Anything can be in a text, such as a formula in the name of an action.
        Value::String(text) => found.push((path.clone(), sizeleak_text::cell(text).into_owned())),
        Value::Bool(_) | Value::Number(_) => found.push((path.clone(), value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(report: &Value, rows: Option<&str>) -> String {
        String::from_utf8(written(report, rows).unwrap()).unwrap()
    }

    #[test]
    fn a_list_has_a_row_for_each_entry_and_a_column_for_each_figure() {
        let report = json!({ "schema": 1, "points": [
            { "policy": "none", "bytes": 0.5, "floor": null },
            { "policy": "=a,b", "bytes": 2, "interval": { "low": 0.25 }, "sets": [3, 4] },
        ] });
        let expected = "policy,bytes,floor,interval.low,sets.0,sets.1\nnone,0.5,,,,\n\"'=a,b\",2,,0.25,3,4\n";
        assert_eq!(text(&report, Some("points")), expected);
        assert_eq!(text(&json!([{ "a": 1 }]), None), "a\n1\n");
    }

    #[test]
    fn figures_without_a_list_have_a_row_each() {
        let report =
            json!({ "sentence": "It is.", "by_size": { "command": { "named": 0.25 } }, "tries": [{ "named": 1 }] });
        let expected = "figure,value\nsentence,It is.\nby_size.command.named,0.25\ntries.0.named,1\n";
        assert_eq!(text(&report, None), expected);
    }
}
