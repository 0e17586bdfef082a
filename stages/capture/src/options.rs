//! The options of `capture`: its flags and its keys in `pipeline.toml`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use sizeleak_stage::{ConfigureError, Runnable, SourceNode, StageOptions};

use crate::Capture;

/// Which captures to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Captures (pcap or pcapng, also compressed); `-`, or none, is stdin
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read all captures below the folders that are named
    #[arg(long)]
    pub recursive: bool,
}

impl StageOptions for Options {
    const NAME: &'static str = "capture";
    const ABOUT: &'static str = "Packets out of capture files; several are merged by time";

    fn resolve_paths(&mut self, folder: &Path) {
        for file in self.files.iter_mut().filter(|file| file.as_os_str() != "-") {
            *file = folder.join(&*file);
        }
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        let mut files = self.files.clone();
        if files.is_empty() {
            files.push("-".into());
        }
        let stdins = files.iter().filter(|file| file.as_os_str() == "-").count();
        if stdins > 1 {
            return Err(ConfigureError::Usage("stdin can be read once: name `-` once".into()));
        }
        if stdins == 1 && io::stdin().is_terminal() {
            return Err(ConfigureError::Usage("no FILE is named and stdin is a terminal: name a capture".into()));
        }
        for file in files.iter().filter(|file| file.as_os_str() != "-") {
            let metadata =
                file.metadata().map_err(|error| ConfigureError::Input(format!("{}: {error}", file.display())))?;
            if metadata.is_dir() && !self.recursive {
                let fault = format!("{} is a folder: name its files, or use `--recursive`", file.display());
                return Err(ConfigureError::Input(fault));
            }
        }
        Ok(Box::new(SourceNode::new(Capture::new(files))))
    }
}
