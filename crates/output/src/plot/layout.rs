//! Where the parts of a picture are, in pixels.

use super::lanes::Lanes;
use super::page::{Key, Legend, PictureSize, TooSmall};

/// From the left: names, and the numbers of axes.
pub(super) const LEFT: f64 = 190.0;
/// Above: the title.
pub(super) const TOP: f64 = 96.0;
const RIGHT: f64 = 40.0;
/// Of the part with commands.
const MIN_WIDTH: f64 = 100.0;
/// Between the sizes and the lanes.
const GAP: f64 = 20.0;
/// Below the lanes: the labels of the time axis.
const AXIS: f64 = 48.0;
const HEADING: f64 = 22.0;
/// The height of a lane, unless the picture has a height.
const LANE: f64 = 40.0;
const MIN_LANE: f64 = 16.0;
/// The sizes take as much height as this many lanes, if there are commands or nothing else.
const SIZES: f64 = 3.0;
/// The share of a lane that its highest bar takes.
const BAR: f64 = 0.65;

#[derive(Debug)]
pub(super) struct Layout {
    pub(super) all_width: f64,
    pub(super) all_height: f64,
    /// Of the part with commands, which begins at [`LEFT`].
    pub(super) width: f64,
    /// Of the part with sizes, which begins at [`TOP`].
    pub(super) sizes_height: f64,
    /// Where each group has its heading; empty if there is one group.
    pub(super) headings: Vec<f64>,
    pub(super) bases: Vec<f64>,
    /// Of the highest bar in a lane.
    pub(super) bar_height: f64,
    pub(super) bottom: f64,
    pub(super) legend: Legend,
}

impl Layout {
    pub(super) fn new(size: PictureSize, lanes: &Lanes, commands: usize, keys: Vec<Key>) -> Result<Self, TooSmall> {
        let by_commands = LEFT + (commands as f64 * 3.0).clamp(900.0, 3000.0) + RIGHT;
        let all_width = size.width().unwrap_or(by_commands);
        let legend = Legend::new(all_width, keys);
        let has_headings = lanes.groups.len() > 1;
        let all_headings = if has_headings { HEADING * lanes.groups.len() as f64 } else { 0.0 };
        let fixed = TOP + GAP + all_headings + AXIS + legend.height;
        let sizes = if commands == 0 && lanes.count() > 0 { 0.0 } else { SIZES };
        let units = sizes + lanes.count().max(1) as f64;
        let (width, least) = (all_width - LEFT - RIGHT, size.pixels(LEFT + MIN_WIDTH + RIGHT));
        if width < MIN_WIDTH {
            let needs = "a timeline needs".to_owned();
            return Err(TooSmall { needs, dimension: "width", least, less: "a smaller `--font-size`" });
        }
        let lane = size.height().map_or(LANE, |height| (height - fixed) / units);
        if lane < MIN_LANE {
            let (needs, least) = (format!("{} lanes need", lanes.count()), size.pixels(fixed + units * MIN_LANE));
            return Err(TooSmall { needs, dimension: "height", least, less: "fewer gateways or flows" });
        }
        let (mut headings, mut bases, mut y) = (Vec::new(), Vec::new(), TOP + lane * sizes + GAP);
        for group in &lanes.groups {
            if has_headings {
                y += HEADING;
                headings.push(y - 4.0);
            }
            for _ in &group.lanes {
                y += lane;
                bases.push(y);
            }
        }
        Ok(Self {
            all_width,
            all_height: fixed + units * lane,
            width,
            sizes_height: lane * sizes,
            headings,
            bases,
            bar_height: lane * BAR,
            bottom: y,
            legend,
        })
    }

    pub(super) fn base(&self, lane: usize) -> f64 {
        self.bases.get(lane).copied().unwrap_or(self.bottom)
    }

    pub(super) fn legend_top(&self) -> f64 {
        self.bottom + AXIS + 4.0
    }
}

#[cfg(test)]
mod tests {
    use svg::node::element;

    use super::super::lanes::{Group, Lane};
    use super::*;

    fn lanes(groups: usize) -> Lanes {
        let group = |_| Group { name: "x".into(), lanes: vec![Lane::NoAction, Lane::Unexplained] };
        Lanes { groups: (0..groups).map(group).collect(), ..Lanes::default() }
    }

    fn keys(count: usize) -> Vec<Key> {
        (0..count).map(|_| Key { name: "x".into(), sample: element::Group::new(), width: 12.0 }).collect()
    }

    #[test]
    fn picture_has_the_size_that_was_asked_for() {
        let size = PictureSize { width: Some(600), height: Some(500), font: None };
        let layout = Layout::new(size, &lanes(3), 10, keys(4)).unwrap();
        assert_eq!((layout.all_width, layout.all_height.round()), (600.0, 500.0));
        assert!(layout.bases.len() == 6 && layout.headings.len() == 3 && layout.bases.is_sorted());
        assert!(layout.legend_top() + layout.legend.height <= 520.0, "{layout:?}");
        let twice = PictureSize { width: Some(1200), height: Some(1000), font: Some(24) };
        let twice = Layout::new(twice, &lanes(3), 10, keys(4)).unwrap();
        assert_eq!((twice.all_width, twice.bases), (600.0, layout.bases), "a greater font enlarges all");
    }

    #[test]
    fn too_small_a_height_names_the_least() {
        let size = |height| PictureSize { width: None, height: Some(height), font: None };
        let error = Layout::new(size(200), &lanes(3), 10, keys(4)).unwrap_err();
        assert!(Layout::new(size(error.least), &lanes(3), 10, keys(4)).is_ok(), "{error}");
        assert!(Layout::new(size(error.least - 1), &lanes(3), 10, keys(4)).is_err(), "{error}");
    }

    #[test]
    fn size_without_wishes_grows_with_the_commands_and_lanes() {
        let layout = |groups, commands| Layout::new(PictureSize::default(), &lanes(groups), commands, keys(1)).unwrap();
        assert!(layout(1, 1000).width > layout(1, 10).width && layout(2, 10).all_height > layout(1, 10).all_height);
        assert!((layout(0, 0).all_height - layout(0, 0).bottom) > 40.0, "an empty timeline has a layout too");
    }
}
