//! The options of `capture`: its flags and its keys in `pipeline.toml`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_frame::BatchLimit;
use sizeleak_packet::{AddressPrefilter, AddressSet};
use sizeleak_platform::runtime::{Access, ConfigureError, Runnable, SourceNode, StageOptions};

use crate::Capture;
use crate::error::{CaptureError, Damage};
use crate::live::{LiveCapture, Tcpdump};
use crate::merge::CaptureOrder;
use crate::open::content_below;
use crate::packet_batcher::Selection;

/// Which captures to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Captures (pcap or pcapng, optionally compressed) or named pipes; `-`, or no file, is stdin
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read all captures below the folders named
    #[arg(long)]
    pub recursive: bool,

    /// Pass on only packets that may matter to this address or network; can be repeated
    ///
    /// Its own, and those that need a closer look (tunnels, fragments, DNS answers). `flow-filter --gateway` with the
    /// same addresses finds the same flows, with far less data in the pipe.
    #[arg(long, value_name = "IP|CIDR", value_delimiter = ',')]
    pub only: Vec<String>,

    /// How several captures follow each other
    #[arg(long, value_enum, default_value_t)]
    pub order: CaptureOrder,

    /// Capture from this interface instead of files, until stopped
    ///
    /// By tcpdump, which needs root or the rights to capture, and leaves root once the interface is open.
    #[arg(short, long, value_name = "IF", conflicts_with_all = ["files", "recursive"])]
    pub interface: Option<String>,

    /// Capture at most this many bytes of each packet of the interface
    #[arg(long, value_name = "BYTES", requires = "interface", value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub snaplen: Option<u32>,

    /// Capture only packets of the interface that match this tcpdump filter expression
    #[arg(long, value_name = "EXPR", requires = "interface")]
    pub filter: Option<String>,
}

impl Options {
    /// Finds errors that are known before anything is read.
    fn check_files(&self, files: &[PathBuf]) -> Result<(), ConfigureError> {
        let stdins = files.iter().filter(|file| file.as_os_str() == "-").count();
        if stdins > 1 {
            return Err(ConfigureError::Usage("stdin can be read only once: name `-` once".into()));
        }
        if stdins == 1 && io::stdin().is_terminal() {
            return Err(ConfigureError::Usage("no FILE is named and stdin is a terminal: name a capture".into()));
        }
        let fault = |file: &PathBuf| match file.metadata() {
            _ if file.as_os_str() == "-" => None,
            Err(error) => Some(Damage::of_open(file, error)),
            Ok(metadata) if metadata.is_dir() && !self.recursive => Some(Damage::Folder),
            Ok(_) => None,
        };
        let faults = files.iter().filter_map(|file| Some(CaptureError { file: file.clone(), damage: fault(file)? }));
        let faults: Vec<CaptureError> = faults.collect();
        match faults.as_slice() {
            // Those that can be read are read, and the stage reports the others.
            faults if faults.len() < files.len() => Ok(()),
            [] => Ok(()),
            [only] => Err(ConfigureError::Input(only.to_string())),
            [first, others @ ..] => {
                let fault = format!("{first}; nor can any other of the {} captures be read", others.len() + 1);
                Err(ConfigureError::Input(fault))
            }
        }
    }

    /// The stage, followed in the same process by one that drops what `prefilter` excludes and makes its own batches of
    /// this size.
    pub fn build_for(
        &self,
        prefilter: AddressPrefilter,
        batches: BatchLimit,
    ) -> Result<Box<dyn Runnable>, ConfigureError> {
        self.build_selecting(Selection::NotDropped(prefilter, batches))
    }

    /// The stage with a selection, which `only` replaces.
    fn build_selecting(&self, selection: Selection) -> Result<Box<dyn Runnable>, ConfigureError> {
        let selection = if self.only.is_empty() {
            selection
        } else {
            let only = AddressSet::parse(&self.only).map_err(|error| ConfigureError::Usage(error.to_string()))?;
            Selection::Only(AddressPrefilter::new(only))
        };
        match &self.interface {
            Some(_) if !self.files.is_empty() || self.recursive => {
                return Err(ConfigureError::Usage("`interface` and files cannot be captured at once".into()));
            }
            Some(interface) => {
                let started = Tcpdump::start(interface, self.snaplen, self.filter.as_deref());
                let started = started.map_err(|error| ConfigureError::Input(error.to_string()))?;
                return Ok(Box::new(SourceNode::new(LiveCapture::new(started, selection))));
            }
            None if self.snaplen.is_some() || self.filter.is_some() => {
                return Err(ConfigureError::Usage(
                    "`snaplen` and `filter` are for an `interface`, and none is named".into(),
                ));
            }
            None => {}
        }
        let mut files = self.files.clone();
        if files.is_empty() {
            files.push("-".into());
        }
        self.check_files(&files)?;
        let mut capture = Capture::new(files).in_order(self.order);
        (capture.reads_folders, capture.selection) = (self.recursive, selection);
        Ok(Box::new(SourceNode::new(capture)))
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "capture";
    const ABOUT: &'static str = "Reads packets from capture files, several merged by time";
    const EXAMPLES: &'static [&'static str] = &[
        "capture monday.pcap.gz tuesday.pcap.gz | flow-filter --gateway 192.168.1.20 | sizeleak frames",
        "capture --interface eth1 --filter tcp | flow-filter --gateway 192.168.1.20 | record-sizer | sizeleak frames",
    ];

    const PATHS: &'static [&'static str] = &["files"];

    fn access(&self) -> Access {
        let mut access = Access::default();
        for file in self.files.iter().filter(|file| file.as_os_str() != "-") {
            // A link may lead out of its folder.
            let below = if file.is_dir() { content_below(file).files } else { Vec::new() };
            below.into_iter().filter(|file| file.is_symlink()).for_each(|link| access.read(link));
            access.read(file);
        }
        access.signals_programs = self.interface.is_some();
        access
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        self.build_selecting(Selection::All)
    }
}
