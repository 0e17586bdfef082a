//! Draws the results of `benches/growth.sh`: time by bytes, and time by connections.

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use plotters::coord::Shift;
use plotters::coord::combinators::LogCoord;
use plotters::prelude::*;
use serde::Deserialize;

#[derive(Parser)]
#[command(about = "Draws how the time of a run grows")]
struct Arguments {
    /// The results: a tab-separated table with the columns series, amount and seconds
    results: PathBuf,
    /// The SVG to write
    picture: PathBuf,
}

/// A line of the results.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Measured {
    series: Series,
    /// Bytes of the capture, or connections in it.
    amount: f64,
    /// User and system time.
    seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Series {
    /// Captures of other hosts' traffic, by bytes.
    Bytes,
    /// Captures of one size, by connections of which a hundred are open at once.
    Connections,
    /// Captures of one size, by connections that are all open at once.
    AtOnce,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<LogCoord<f64>, LogCoord<f64>>>;

/// Two colours that differ in lightness too.
const FIRST: RGBColor = RGBColor(2, 56, 88);
const SECOND: RGBColor = RGBColor(213, 94, 0);
const PROPORTION: RGBColor = RGBColor(120, 120, 120);

fn main() -> Result<()> {
    let Arguments { results, picture } = Arguments::parse();
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(b'\t')
        .from_path(&results)
        .with_context(|| format!("{} cannot be read", results.display()))?;
    let measured: Vec<Measured> = reader
        .deserialize()
        .collect::<Result<_, _>>()
        .with_context(|| format!("{} is not what growth.sh writes", results.display()))?;
    let root = SVGBackend::new(&picture, (1000, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(500);
    by_bytes(&left, &of(&measured, Series::Bytes))?;
    by_connections(&right, &of(&measured, Series::Connections), &of(&measured, Series::AtOnce))?;
    root.present().with_context(|| format!("{} cannot be written", picture.display()))
}

/// The seconds of a series, in the order of its amounts.
fn of(measured: &[Measured], series: Series) -> Vec<(f64, f64)> {
    let mut points: Vec<_> =
        measured.iter().filter(|one| one.series == series).map(|one| (one.amount, one.seconds)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Seconds by bytes, with the line proportional to the largest.
fn by_bytes(area: &Area<'_>, points: &[(f64, f64)]) -> Result<()> {
    let mut chart = chart(area, "A: time by bytes", ("bytes of the capture", 5e6..2e10), 1e-3..1e1)?;
    if let Some((most, seconds)) = points.last() {
        let proportional = [5e6, 2e10].map(|bytes| (bytes, seconds * bytes / most));
        draw_line(&mut chart, proportional, &format!("in proportion to {}B", amount(*most)))?;
    }
    draw_points(&mut chart, points, FIRST, "measured")?;
    draw_legend(&mut chart)
}

/// Seconds by connections, with the straight line from the fewest to the most.
fn by_connections(area: &Area<'_>, hundred: &[(f64, f64)], at_once: &[(f64, f64)]) -> Result<()> {
    let connections = ("connections in the capture", 0.7..2e6);
    let mut chart = chart(area, "C, 1 GB: time by connections", connections, 1e-1..1e2)?;
    if let (Some((fewest, begin)), Some((most, end))) = (hundred.first(), hundred.last()) {
        let each = (end - begin) / (most - fewest);
        let linear = (0..=60).map(|step| 10_f64.powf(f64::from(step) / 10.0)).map(|at| (at, begin + each * at));
        draw_line(&mut chart, linear, &format!("{begin:.2} s and {:.1} µs a connection", each * 1e6))?;
    }
    draw_points(&mut chart, hundred, FIRST, "a hundred at once")?;
    draw_points(&mut chart, at_once, SECOND, "all at once")?;
    draw_legend(&mut chart)
}

/// A chart of seconds by something, both on logarithmic axes.
fn chart<'a>(
    area: &Area<'a>,
    caption: &str,
    (of, range): (&str, Range<f64>),
    seconds: Range<f64>,
) -> Result<Chart<'a>> {
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 16))
        .margin(14)
        .x_label_area_size(42)
        .y_label_area_size(62)
        .build_cartesian_2d(range.log_scale(), seconds.log_scale())?;
    chart
        .configure_mesh()
        .x_desc(of)
        .y_desc("user and system time, s")
        .x_label_formatter(&|value| amount(*value))
        .light_line_style(TRANSPARENT)
        .draw()?;
    Ok(chart)
}

fn draw_line(chart: &mut Chart<'_>, points: impl IntoIterator<Item = (f64, f64)>, label: &str) -> Result<()> {
    chart
        .draw_series(LineSeries::new(points, PROPORTION))?
        .label(label)
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], PROPORTION));
    Ok(())
}

fn draw_points(chart: &mut Chart<'_>, points: &[(f64, f64)], colour: RGBColor, label: &str) -> Result<()> {
    chart
        .draw_series(points.iter().map(|point| Circle::new(*point, 4, colour.filled())))?
        .label(label)
        .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
    Ok(())
}

fn draw_legend(chart: &mut Chart<'_>) -> Result<()> {
    chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).border_style(PROPORTION).draw()?;
    Ok(())
}

/// A number in few characters.
fn amount(value: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    units
        .iter()
        .find(|(unit, _)| value >= *unit)
        .map_or_else(|| format!("{value}"), |(unit, name)| format!("{} {name}", value / unit))
}
