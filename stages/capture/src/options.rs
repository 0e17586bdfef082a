//! The options of `capture`: its flags and its keys in `pipeline.toml`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_frame::BatchLimit;
use sizeleak_packet::{AddressPrefilter, Networks};
use sizeleak_runtime::{ConfigureError, Runnable, SourceNode, StageOptions};

use crate::Capture;
use crate::packet_batcher::Selection;

/// Which captures to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Captures (pcap or pcapng, also compressed) and named pipes; `-`, or none, is stdin
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Read all captures below the folders that are named
    #[arg(long)]
    pub recursive: bool,

    /// Hand on only packets that may matter to these addresses or networks: theirs, and those that need a closer look (tunnels,
    /// fragments, answers of name servers). `flow-filter --gateway` with the same finds the same behind a pipe that
    /// carries far less
    #[arg(long, value_name = "IP|CIDR", num_args = 1.., value_delimiter = ',')]
    pub only: Vec<String>,

    /// Capture the packets of this interface instead, until stopped. Only in programs built with `--features live`, which
    /// needs the headers of libpcap (Debian and Ubuntu: apt-get install libpcap-dev); elsewhere `tcpdump -i IFACE -U -w - |
    /// capture -` does the same. Needs the rights that tcpdump needs
    #[arg(long, value_name = "IFACE", conflicts_with_all = ["files", "recursive"])]
    pub interface: Option<String>,

    /// Capture so many bytes of each packet of the interface, instead of all
    #[arg(long, value_name = "BYTES", requires = "interface", value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub snaplen: Option<u32>,

    /// Capture only packets of the interface that this filter lets pass, in tcpdump's language
    #[arg(long, value_name = "FILTER", requires = "interface")]
    pub bpf: Option<String>,
}

impl Options {
    /// The interface's packets, ready to be captured.
    #[cfg(feature = "live")]
    fn build_live(&self, interface: &str, selection: Selection) -> Result<Box<dyn Runnable>, ConfigureError> {
        let capture = crate::LiveCapture::open(interface, self.snaplen, self.bpf.as_deref());
        let capture = capture.map_err(|error| ConfigureError::Input(error.to_string()))?;
        Ok(Box::new(SourceNode::new(capture.selecting(selection))))
    }

    /// Says what to do instead.
    #[cfg(not(feature = "live"))]
    #[expect(clippy::unused_self, reason = "the same call with the feature and without")]
    fn build_live(&self, interface: &str, _: Selection) -> Result<Box<dyn Runnable>, ConfigureError> {
        Err(ConfigureError::Usage(format!(
            "`interface`: this program was built without live capture; build it with `--features live` (needs libpcap's \
             headers), or pipe `tcpdump -i {interface} -U -w -` into `capture -`"
        )))
    }

    /// Checks that what is named can be read, as far as that can be told beforehand.
    fn check_files(&self, files: &[PathBuf]) -> Result<(), ConfigureError> {
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
        Ok(())
    }
}

impl Options {
    /// The stage, for a stage behind it in the same process that drops what does not pass its `sieve` and makes its own batches
    /// of this size.
    ///
    /// # Errors
    /// As [`StageOptions::build`].
    pub fn build_for(&self, sieve: AddressPrefilter, batches: BatchLimit) -> Result<Box<dyn Runnable>, ConfigureError> {
        self.build_sifted(Selection::For(sieve, batches))
    }

    fn build_sifted(&self, behind: Selection) -> Result<Box<dyn Runnable>, ConfigureError> {
        let selection = if self.only.is_empty() {
            behind
        } else {
            Selection::Only(AddressPrefilter::new(Networks::parse(&self.only)?))
        };
        match &self.interface {
            Some(_) if !self.files.is_empty() || self.recursive => {
                return Err(ConfigureError::Usage("`interface` and files cannot be captured at once".into()));
            }
            Some(interface) => return self.build_live(interface, selection),
            None if self.snaplen.is_some() || self.bpf.is_some() => {
                return Err(ConfigureError::Usage(
                    "`snaplen` and `bpf` are for an `interface`, and none is named".into(),
                ));
            }
            None => {}
        }
        let mut files = self.files.clone();
        if files.is_empty() {
            files.push("-".into());
        }
        self.check_files(&files)?;
        Ok(Box::new(SourceNode::new(Capture::new(files).selecting(selection))))
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "capture";
    const ABOUT: &'static str = "Packets out of capture files; several are merged by time";
    const EXAMPLES: &'static [&'static str] = &[
        "capture monday.pcap.gz tuesday.pcap.gz | flow-filter --gateway 192.168.1.20 | sizeleak frames",
        "tcpdump -i eth1 -U -w - | capture - | flow-filter --gateway 192.168.1.20 | record-sizer | sizeleak frames",
    ];

    fn resolve_paths(&mut self, folder: &Path) {
        for file in self.files.iter_mut().filter(|file| file.as_os_str() != "-") {
            *file = folder.join(&*file);
        }
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        self.build_sifted(Selection::All)
    }
}
