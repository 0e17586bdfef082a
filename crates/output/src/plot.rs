//! Timelines of commands, and what homes usually do, drawn as SVG.

mod axis;
mod command_filter;
mod drawing;
mod habits;
mod lanes;
mod layout;
mod legend;
mod page;
mod rate_scale;
#[cfg(test)]
mod samples;
mod shapes;
mod size_axis;
mod timeline;

pub use command_filter::{CommandFilter, TimePoint};
pub use drawing::svg_of;
pub use habits::{ActionHours, HomeHabits, RoutineRow, habits_svg};
pub use page::{PictureSize, TooSmall};
pub use timeline::{Timeline, Truth};
