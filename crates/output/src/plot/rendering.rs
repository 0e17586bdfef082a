//! Pictures as PNG and PDF. Their font comes with the program, so they need none of the machine and are the same on every one.

use std::collections::BTreeSet;

use krilla::Document;
use krilla::geom::Size;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt, SvgSettings};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Group, Node, Options, Tree};
use thiserror::Error;

/// Noto Sans, cut to the Latin, Greek and Cyrillic letters, figures and signs: see `font/README.md`.
const FONTS: [&[u8]; 2] =
    [include_bytes!("../../font/NotoSans-Regular.ttf"), include_bytes!("../../font/NotoSans-Bold.ttf")];
const FAMILY: &str = "Noto Sans";

/// The most pixels of a PNG, which take 512 MiB while it is drawn.
const MAX_PIXELS: u64 = 1 << 27;

/// A pixel of a picture is a point of a page, 1/72 inch, times this: a figure of 640 pixels is 3.5 inches wide.
const POINTS: f32 = 252.0 / 640.0;

#[derive(Debug, Error)]
pub enum RenderingError {
    #[error(
        "a PNG of {0} × {1} pixels would take more than 512 MiB of memory: give a smaller `--size`, or \
         write SVG or PDF"
    )]
    TooLarge(u32, u32),
    #[error("the picture cannot be drawn: {0}")]
    Failed(String),
}

#[derive(Debug)]
pub struct Rendering(Tree);

impl Rendering {
    /// Lays out a picture that this crate drew as SVG.
    pub fn new(svg: &str) -> Result<Self, RenderingError> {
        let mut options = Options { font_family: FAMILY.to_owned(), ..Options::default() };
        let fonts = options.fontdb_mut();
        for font in FONTS {
            fonts.load_font_data(font.to_vec());
        }
        fonts.set_sans_serif_family(FAMILY);
        Tree::from_str(svg, &options).map(Self).map_err(|error| RenderingError::Failed(error.to_string()))
    }

    /// The characters that its font does not have, and that are drawn as boxes; empty if it has all.
    pub fn missing(&self) -> String {
        let mut missing = BTreeSet::new();
        add_missing(self.0.root(), &mut missing);
        missing.into_iter().collect()
    }

    /// As PNG, in pixels of the picture.
    pub fn png(&self) -> Result<Vec<u8>, RenderingError> {
        let size = self.0.size().to_int_size();
        let (width, height) = (size.width(), size.height());
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(RenderingError::TooLarge(width, height));
        }
        let mut pixels = Pixmap::new(width, height).ok_or(RenderingError::TooLarge(width, height))?;
        resvg::render(&self.0, Transform::identity(), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| RenderingError::Failed(error.to_string()))
    }

    /// As PDF of one page; its text can be selected.
    pub fn pdf(&self) -> Result<Vec<u8>, RenderingError> {
        let failed = || RenderingError::Failed("its size is no page".to_owned());
        let (width, height) = (self.0.size().width() * POINTS, self.0.size().height() * POINTS);
        let size = Size::from_wh(width, height).ok_or_else(failed)?;
        let mut document = Document::new();
        let mut page = document.start_page_with(PageSettings::new(size));
        let mut surface = page.surface();
        surface.draw_svg(&self.0, size, SvgSettings::default()).ok_or_else(failed)?;
        surface.finish();
        page.finish();
        document.finish().map_err(|error| RenderingError::Failed(format!("{error:?}")))
    }
}

/// The characters of a group's texts that no font has: their glyph is number 0.
fn add_missing(group: &Group, missing: &mut BTreeSet<char>) {
    for node in group.children() {
        match node {
            Node::Group(group) => add_missing(group, missing),
            Node::Text(text) => {
                let glyphs = text.layouted().iter().flat_map(|span| &span.positioned_glyphs);
                glyphs.filter(|glyph| glyph.id.0 == 0).for_each(|glyph| missing.extend(glyph.text.chars()));
            }
            _ => {}
        }
    }
}
