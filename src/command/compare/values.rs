//! A comparison as CSV.

use serde::Serialize;

use super::comparison::{Comparison, Entry};

/// A row; its fields are the columns.
#[derive(Debug, Serialize)]
struct Row<'a> {
    pipeline: &'a str,
    figure: &'a str,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    difference: Option<f64>,
    difference_low: Option<f64>,
    difference_high: Option<f64>,
    p_value: Option<f64>,
}

/// A row for each pipeline and figure; what there is not, is empty.
pub(super) fn csv(comparison: &Comparison) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for compared in &comparison.pipelines {
        for value in &compared.figures {
            writer.serialize(Row::new(&compared.pipeline, value))?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

impl<'a> Row<'a> {
    fn new(pipeline: &'a str, value: &'a Entry) -> Self {
        let difference = value.difference.as_ref();
        let between = difference.and_then(|difference| difference.interval);
        Self {
            pipeline,
            figure: value.figure,
            value: value.value,
            low: value.interval.map(|interval| interval.low),
            high: value.interval.map(|interval| interval.high),
            difference: difference.map(|difference| difference.value),
            difference_low: between.map(|interval| interval.low),
            difference_high: between.map(|interval| interval.high),
            p_value: difference.and_then(|difference| difference.p_value),
        }
    }
}
