//! Pictures as SVG: timelines of commands, what homes usually do, and figures of reports.

mod calibration;
mod chart;
mod confusion;
mod drawing;
mod habits;
mod lanes;
mod latency;
mod layout;
mod legend;
mod marks;
mod page;
mod panel;
#[cfg(feature = "figures")]
mod rendering;
mod scale;
mod sizes;
mod timeline;

pub use calibration::{CalibrationFigure, LearningCurveFigure, PaddingFigure};
pub use chart::{ChartKind, ChartNumbers};
pub use confusion::ConfusionFigure;
pub use drawing::svg_of;
pub use habits::{HomeHabits, habits_svg};
pub use latency::{Quantiles, StageLatency, latency_svg};
pub use page::{PictureSize, TooSmall};
#[cfg(feature = "figures")]
pub use rendering::{Rendering, RenderingError};
pub use sizes::CommandSizes;
pub use timeline::{CommandFilter, TimePoint, Timeline, Truth};

#[cfg(test)]
mod samples;
