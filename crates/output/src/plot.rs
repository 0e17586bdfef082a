//! Pictures as SVG: timelines of commands, what homes usually do, and figures of reports.

mod axis;
mod calibration;
mod command_filter;
mod confusion;
mod drawing;
mod habits;
mod lanes;
mod latency;
mod layout;
mod learning_curve;
mod legend;
mod marks;
mod padding;
mod page;
mod panel;
mod rate_scale;
#[cfg(test)]
mod samples;
mod scale;
mod shapes;
mod sizes;
mod timeline;

pub use calibration::CalibrationFigure;
pub use command_filter::{CommandFilter, TimePoint};
pub use confusion::ConfusionFigure;
pub use drawing::svg_of;
pub use habits::{ActionHours, HomeHabits, RoutineRow, habits_svg};
pub use latency::{Quantiles, StageLatency, latency_svg};
pub use learning_curve::LearningCurveFigure;
pub use padding::PaddingFigure;
pub use page::{PictureSize, TooSmall};
pub use sizes::CommandSizes;
#[cfg(feature = "figures")]
mod rendering;
#[cfg(feature = "figures")]
pub use rendering::{Rendering, RenderingError};
pub use timeline::{Timeline, Truth};
