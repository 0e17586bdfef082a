//! What tshark makes of a capture: its TLS and DTLS records, one by one, with its settings pinned.
//!
//! Field lists (`-T fields`) cannot be zipped, since a TLS 1.3 record carries `opaque_type` in place of `content_type`;
//! so its JSON is read record by record.

mod json;

use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

pub use self::json::Seen;

/// Settings without which tshark is not a fair reference.
const SETTINGS: [&str; 8] = [
    // Off by default: counts are then wrong both ways.
    "tcp.reassemble_out_of_order:TRUE",
    "tcp.desegment_tcp_streams:TRUE",
    "tls.desegment_ssl_records:TRUE",
    // Offloading leaves checksums that are wrong.
    "tcp.check_checksum:FALSE",
    "udp.check_checksum:FALSE",
    "ip.check_checksum:FALSE",
    "ip.defragment:TRUE",
    "ipv6.defragment:TRUE",
];

/// The printed fields that are read; the bytes of packets would be most of the output.
const PRINTED: &str = "frame ip ipv6 tcp udp tls tls.record dtls dtls.record";

/// An installed tshark, and where its answers are kept.
#[derive(Debug)]
pub struct Tshark {
    version: String,
    cache: PathBuf,
}

impl Tshark {
    /// The tshark of this machine. Its answers are kept below `cache`, by its version, its arguments and the capture.
    ///
    /// # Panics
    /// If it does not print its version.
    pub fn new(cache: &Path) -> Self {
        let output = Command::new("tshark").arg("--version").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().unwrap().to_owned();
        Self { version, cache: cache.to_owned() }
    }

    /// The records of a capture, in tshark's order. `decode_as` names ports that tshark should take to be TLS.
    ///
    /// # Panics
    /// Where tshark cannot be run or prints what cannot be read.
    pub fn records(&self, capture: &Path, decode_as: &[&str]) -> Vec<Seen> {
        let arguments = arguments(decode_as);
        let mut digest = Sha256::new();
        digest.update(&self.version);
        for argument in &arguments {
            digest.update(argument);
        }
        digest.update(fs::read(capture).unwrap());
        let digest = u128::from_be_bytes(*digest.finalize().first_chunk().unwrap());
        let name = format!("{digest:032x}");
        let kept = self.cache.join(name).with_extension("json");
        if let Ok(text) = fs::read(&kept)
            && let Ok(records) = serde_json::from_slice(&text)
        {
            return records;
        }
        let records = run(capture, &arguments);
        fs::create_dir_all(&self.cache).unwrap();
        fs::write(&kept, serde_json::to_vec(&records).unwrap()).unwrap();
        records
    }
}

fn arguments(decode_as: &[&str]) -> Vec<String> {
    let settings = SETTINGS.iter().flat_map(|setting| ["-o", setting]);
    let decodes = decode_as.iter().flat_map(|decode| ["-d", decode]);
    let output = ["-n", "-Y", "tls or dtls", "-T", "json", "--no-duplicate-keys", "-j", PRINTED];
    settings.chain(decodes).chain(output).map(str::to_owned).collect()
}

fn run(capture: &Path, arguments: &[String]) -> Vec<Seen> {
    let mut child = Command::new("tshark")
        .arg("-r")
        .arg(capture)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let read = json::records(BufReader::new(child.stdout.take().unwrap()));
    // Its exit code only shows whether the capture was whole.
    child.wait().unwrap();
    read.unwrap_or_else(|error| panic!("{}: tshark's output cannot be read: {error}", capture.display()))
}
