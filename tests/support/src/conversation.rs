//! A conversation between OpenSSL's server and client through real sockets, in a network namespace of its own, recorded
//! by tcpdump.

mod process;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::tool;
use process::{Ends, Running};

/// The gateway: the client.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 20);
/// The service: the server.
pub const SERVICE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
/// The name the client asks for.
pub const SERVER_NAME: &str = "hub.example";
const PORT: u16 = 443;

/// The protection of the conversation.
#[derive(Debug, Clone, Copy)]
pub struct Protection {
    /// OpenSSL's flag for the version, such as `-tls1_2`.
    pub version: &'static str,
    /// OpenSSL's name of the suite.
    pub suite: &'static str,
}

impl Protection {
    fn flags(&self) -> Vec<&'static str> {
        match self.version {
            "-tls1_3" => vec![self.version, "-ciphersuites", self.suite],
            // Without an MTU of its own OpenSSL forbids fragments, and large messages cannot be sent.
            "-dtls1_2" => vec![self.version, "-mtu", "1400", "-cipher", self.suite],
            _ => vec![self.version, "-cipher", self.suite],
        }
    }
}

/// A message as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Whether the service sent it.
    pub to_gateway: bool,
    /// Its plaintext in bytes.
    pub size: usize,
    /// At or before its first byte was sent, nanoseconds since the epoch.
    pub from_ns: i64,
    /// At or after its last byte arrived.
    pub until_ns: i64,
}

/// A network namespace with the two addresses. It lives as long as this does.
pub struct Namespace {
    holder: Running,
    folder: PathBuf,
}

impl Namespace {
    /// A new namespace, and a certificate in `folder`.
    ///
    /// # Errors
    /// What the system lacks or does not permit.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let set_up = format!(
            "set -e; ip address add {GATEWAY}/32 dev lo; ip address add {SERVICE}/32 dev lo; \
             ip link set lo mtu 1500 up; echo ready; exec cat"
        );
        let mut holder = Command::new("unshare");
        holder.args(["--net", "sh", "-c", &set_up]);
        let mut holder = Running::start(holder, Ends::InOut)?;
        holder.expect(b"ready\n")?;
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem"];
        tool::output(
            Command::new("openssl")
                .args(["req", "-x509", "-days", "2", "-subj", "/CN=hub.example", "-out", "certificate.pem"])
                .args(key)
                .current_dir(folder),
        )?;
        Ok(Self { holder, folder: folder.to_owned() })
    }

    /// Sends messages of these sizes, alternately by the service and the gateway, service first. Writes the capture to
    /// `name` in the folder, and returns its path and the messages.
    ///
    /// # Errors
    /// What one of the programs reported or failed to do.
    pub fn converse(
        &self,
        name: &str,
        protection: Protection,
        sizes: &[usize],
    ) -> Result<(PathBuf, Vec<Message>), String> {
        let mut server = self.inside("openssl");
        server.args(["s_server", "-quiet", "-cert", "certificate.pem", "-key", "key.pem"]);
        server.args(["-accept", &format!("{SERVICE}:{PORT}")]).args(protection.flags());
        self.converse_with(server, name, protection, sizes)
    }

    /// The same by TLS 1.3, where the service pads its records by the policy in a file, through OpenSSL's callback.
    ///
    /// # Errors
    /// What one of the programs reported or failed to do.
    pub fn converse_padded(
        &self,
        policy: &Path,
        name: &str,
        sizes: &[usize],
    ) -> Result<(PathBuf, Vec<Message>), String> {
        let mut server = self.inside("python3");
        server.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conversation/padding_server.py"));
        server.args([&SERVICE.to_string(), &PORT.to_string(), "certificate.pem", "key.pem"]).arg(policy);
        let protection = Protection { version: "-tls1_3", suite: "TLS_AES_128_GCM_SHA256" };
        self.converse_with(server, name, protection, sizes)
    }

    fn converse_with(
        &self,
        server: Command,
        name: &str,
        protection: Protection,
        sizes: &[usize],
    ) -> Result<(PathBuf, Vec<Message>), String> {
        let capture = self.folder.join(name);
        let mut recorder = self.inside("tcpdump");
        // Unbuffered and immediate, so that nothing waits in memory at the end; with a larger buffer than the usual
        // one, which in immediate mode holds only a few packets.
        recorder.args(["-i", "lo", "-n", "-U", "--immediate-mode", "-s", "70000", "-B", "65536", "-Z", "root", "-w"]);
        recorder.arg(&capture);
        let mut recorder = Running::start(recorder, Ends::Error)?;
        recorder.expect_line("listening on")?;

        let mut server = Running::start(server, Ends::InOut)?;
        self.await_socket(protection)?;

        let mut client = self.inside("openssl");
        client.args(["s_client", "-quiet", "-servername", SERVER_NAME, "-bind", &format!("{GATEWAY}:40000")]);
        client.args(["-connect", &format!("{SERVICE}:{PORT}")]).args(protection.flags());
        let mut client = Running::start(client, Ends::InOut)?;

        let mut messages = Vec::new();
        // The gateway speaks first: with DTLS, messages of the service before the end of the handshake would be lost.
        for (size, to_gateway) in sizes.iter().zip([false, true].into_iter().cycle()) {
            let (sender, receiver) = if to_gateway { (&mut server, &mut client) } else { (&mut client, &mut server) };
            let (content, from_ns) = (vec![b'm'; *size], now_ns());
            sender.send(&content)?;
            receiver.expect(&content)?;
            messages.push(Message { to_gateway, size: *size, from_ns, until_ns: now_ns() });
        }
        drop(client);
        wait_until_complete(&capture);
        let said = recorder.interrupt()?;
        if said.contains("\n0 packets dropped by kernel") { Ok((capture, messages)) } else { Err(said) }
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.holder.id().to_string(), "--", program]).current_dir(&self.folder);
        command
    }

    /// Waits until the server's socket exists.
    fn await_socket(&self, protection: Protection) -> Result<(), String> {
        let kind = if protection.version.starts_with("-dtls") { "-lnu" } else { "-lnt" };
        for _ in 0..200 {
            let sockets = tool::output(self.inside("ss").arg(kind))?;
            if String::from_utf8_lossy(&sockets).contains(&format!("{SERVICE}:{PORT}")) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(25));
        }
        Err("the server does not listen".to_owned())
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_nanos()).unwrap()
}

/// Waits until a file has not grown for a while.
fn wait_until_complete(file: &Path) {
    let length = || fs::metadata(file).map_or(0, |metadata| metadata.len());
    let (mut last, mut since) = (length(), Instant::now());
    while since.elapsed() < Duration::from_millis(300) {
        thread::sleep(Duration::from_millis(20));
        if length() != last {
            (last, since) = (length(), Instant::now());
        }
    }
}
