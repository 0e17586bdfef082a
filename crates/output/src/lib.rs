//! Writes frames in human- and machine-readable formats: an aligned table, JSON lines, CSV, Parquet, Zeek's logs,
//! frames again, and Arrow's record batches.
//!
//! ```
//! use sizeleak_frame::Notice;
//! use sizeleak_output::{KindSelection, OutputFormat, OutputWriter, TextStyle};
//!
//! let mut text = Vec::new();
//! let mut writer = OutputWriter::new(OutputFormat::Ndjson, KindSelection::All, TextStyle::default(), &mut text)?;
//! let (stage, what) = ("mine".into(), "gap".into());
//! writer.write(&Notice { time_ns: None, stage, flow: None, what, bytes: Some(3), detail: None }.into())?;
//! writer.finish()?;
//! drop(writer);
//! assert!(text.starts_with(br#"{"notice":{"time_ns":null,"stage":"mine""#));
//! # Ok::<(), std::io::Error>(())
//! ```

mod answers;
#[cfg(feature = "arrow")]
mod arrow;
#[cfg(any(feature = "parquet", feature = "arrow"))]
mod cells;
mod columns;
mod csv;
mod flow_names;
mod json;
#[cfg(feature = "parquet")]
mod parquet;
pub mod plot;
mod table;
mod text_style;
mod writer;
mod zeek;

pub use answers::{AnswerSink, AnswersError, read_answers};
#[cfg(feature = "arrow")]
pub use arrow::RecordBatchBuilder;
pub use columns::has_columns;
#[cfg(feature = "parquet")]
pub use parquet::read_parquet_answers;
pub use text_style::{Clock, Colours, HexLength, KindSelection, TextStyle, TimeFormat};
pub use writer::{OutputFormat, OutputWriter};
pub use zeek::has_zeek_form;
