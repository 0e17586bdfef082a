//! The option `--model` of the stages that work with a model.

use std::fmt::Display;
use std::path::Path;

use crate::ConfigureError;

/// Reads the model file that a stage's option names, and builds the stage with it.
///
/// # Errors
/// [`ConfigureError::Usage`] without a path; [`ConfigureError::Input`] if `read` fails, whose error names the file, or
/// if `build` fails.
pub fn build_with_model<M, S, R: Display, B: Display>(
    path: Option<&Path>,
    read: impl FnOnce(&Path) -> Result<M, R>,
    build: impl FnOnce(M) -> Result<S, B>,
) -> Result<S, ConfigureError> {
    let Some(path) = path else {
        return Err(ConfigureError::Usage("`--model FILE` is missing: `sizeleak learn` makes one".into()));
    };
    let model = read(path).map_err(|error| ConfigureError::Input(error.to_string()))?;
    build(model).map_err(|error| ConfigureError::Input(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_option_is_a_usage_error_and_an_unusable_model_an_input_error() {
        let error_of = |path: Option<&str>, model: Result<u32, &str>| {
            let built: Result<u32, ConfigureError> = build_with_model(
                path.map(Path::new),
                |_| model,
                |model| {
                    if model > 1 { Err("too large") } else { Ok(model) }
                },
            );
            built.map_err(|error| (error.exit_code(), error.to_string()))
        };
        assert_eq!(error_of(None, Ok(1)).unwrap_err().0, 2);
        assert_eq!(error_of(Some("m"), Err("m: unreadable")), Err((1, "m: unreadable".into())));
        assert_eq!(error_of(Some("m"), Ok(2)), Err((1, "m: too large".into())));
        assert_eq!(error_of(Some("m"), Ok(1)), Ok(1));
    }
}
