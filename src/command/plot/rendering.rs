//! A picture in the form that the name of its file asks for.

#[cfg(feature = "figures")]
use crate::command::failure::with_code;
use crate::command::output_form::PictureForm;
use anyhow::Result;

/// The picture as a file; says which characters it lacks.
#[cfg(feature = "figures")]
pub(super) fn rendered(svg: String, form: PictureForm) -> Result<Vec<u8>> {
    use sizeleak_output::plot::{Rendering, RenderingError};
    use sizeleak_platform::telemetry::log::say;

    if form == PictureForm::Svg {
        return Ok(svg.into_bytes());
    }
    let failure = |error: RenderingError| match error {
        RenderingError::TooLarge(..) => with_code(2, error),
        RenderingError::Failed(_) => error.into(),
    };
    let rendering = Rendering::new(&svg).map_err(failure)?;
    let missing = rendering.missing();
    if !missing.is_empty() {
        say("sizeleak", &format!("the font of PNG and PDF lacks {missing}: SVG has them"));
    }
    let picture = if form == PictureForm::Png { rendering.png() } else { rendering.pdf() };
    picture.map_err(failure)
}

#[cfg(not(feature = "figures"))]
#[expect(clippy::unnecessary_wraps, reason = "its other form may fail")]
pub(super) fn rendered(svg: String, PictureForm::Svg: PictureForm) -> Result<Vec<u8>> {
    Ok(svg.into_bytes())
}
