//! Timelines of commands, drawn as SVG.

mod axis;
mod command_filter;
mod drawing;
mod lanes;
mod layout;
mod legend;
#[cfg(test)]
mod samples;
mod shapes;
mod size_axis;
mod timeline;

pub use command_filter::{CommandFilter, TimePoint};
pub use drawing::svg_of;
pub use layout::{PictureSize, TooSmall};
pub use timeline::{Timeline, Truth};
