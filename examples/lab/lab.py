"""What every lab needs: its options, certificates, programs that are waited for, and what it sent."""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

# Loopback answers at all of 127.*; the other side is 127.0.0.1.
SERVER = "127.0.0.2"
# What a client asks for that knows the server by name.
NAME = "hub.example"


def options(text):
    """A parser of the options of each lab; `text` is its description."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--port", type=int, default=8883)
    return parser


def begin(folder, sizes=None):
    """Makes the folder, with certificates and the true sizes, where a lab has them; returns its whole path."""
    # So that what was started ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # An earlier one of the same folder may still end, as after a kill.
    fcntl.flock(os.open(folder / "lock", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
    if sizes is not None:
        (folder / "sizes.json").write_text(json.dumps(sizes) + "\n")
    certify(folder)
    return folder


def true_sizes(message, actions):
    """The bytes that one more device adds to a message, for each action; `message` takes a list of devices."""
    first = {"device": "lamp", "index": 0, "action": "on"}
    more = {action: {"device": "lamp", "index": 1, "action": action} for action in actions}
    return {action: len(message([first, device])) - len(message([first])) for action, device in more.items()}


def certify(folder):
    """An authority of its own, and a certificate for each side."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "rsa:2048", "-nodes"]
    openssl("req", "-x509", *key, "-days", "30", "-subj", "/CN=lab", "-keyout", "ca.key", "-out", "ca.pem")
    (folder / "names").write_text(f"subjectAltName=IP:{SERVER},DNS:{NAME}\n")
    for name in ("server", "client"):
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "30", "-extfile", "names", "-out", f"{name}.pem")


def start(command, folder, name, port):
    """Starts a server, and waits until its port answers."""
    def answers():
        with socket.socket() as probe:
            return probe.connect_ex((SERVER, port)) == 0

    if answers():
        sys.exit(f"{name} cannot start: {SERVER}:{port} is taken; name another port with --port")
    log = (folder / f"{name}.log").open("w")
    # Debian keeps servers where only root looks.
    known = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=known)
    end = time.monotonic() + 30
    while time.monotonic() < end and server.poll() is None:
        if answers():
            return server
        time.sleep(0.05)
    server.kill()
    sys.exit(f"{name} did not start: {folder}/{name}.log says why")


def commands(folder, send):
    """Sends the command of each line of stdin by `send`, which takes its devices and returns the bytes that it sent."""
    with (folder / "sent.ndjson").open("a") as sent:
        for line in sys.stdin:
            devices = json.loads(line)["devices"]
            try:
                sent.write(json.dumps({"devices": devices, "bytes": send(devices)}) + "\n")
                sent.flush()
                print("ok", flush=True)
            except OSError as error:
                print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


class Sent:
    """sent.ndjson, for a lab that knows the bytes of each message: a row for each."""

    def __init__(self, folder):
        self.file = (folder / "sent.ndjson").open("w")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, row):
        self.file.write(json.dumps(row) + "\n")


def now():
    """Nanoseconds since the Unix epoch, by the clock that tcpdump uses."""
    return time.time_ns()


@contextlib.contextmanager
def capture(folder, what, interface="lo", within=(), name="capture.pcap"):
    """Captures what passes the filter `what` into capture.pcap; `within` is the start of a command that leads to
    where the interface is, as `ip netns exec NAME`. No packet may be missing: the log is compared with all of them."""
    command = [*within, "tcpdump", "-i", interface, "-n", "-U", "--immediate-mode", "-B", "65536", "-s", "0",
               "-Z", "root", "-w", folder / name, what]
    known = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=known)
    for line in running.stderr:
        if "listening on" in line:
            break
    else:
        sys.exit("tcpdump did not start: it needs to be installed, and root")
    try:
        yield
    finally:
        # What was sent last is still on its way.
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        told = running.stderr.read()
        running.wait()
    if "0 packets dropped by kernel" not in told:
        sys.exit(f"the capture is not whole: {told.strip()}")


def namespace(name):
    """Its name for `ip netns`: several labs may run at once."""
    return f"lab{os.getpid()}-{name}"


def inside(name):
    """The start of a command that runs in a namespace of `namespaces`."""
    return ["ip", "netns", "exec", namespace(name)]


@contextlib.contextmanager
def namespaces(hosts):
    """A network namespace for each host, on one switch: its interface is `lab`, and its number N (1 to 254) gives its
    addresses, 10.9.0.N and fe80::ff:fe00:N. Nothing leaves them, and they end with it."""
    def ip(*words):
        subprocess.run(["ip", *map(str, words)], check=True)

    def end():
        for name in ["switch", *hosts]:
            subprocess.run(["ip", "netns", "del", namespace(name)], stderr=subprocess.DEVNULL)

    switch = namespace("switch")
    try:
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "switch", "type", "bridge", "mcast_snooping", 0)
        ip("-n", switch, "link", "set", "switch", "up")
        for name, number in hosts.items():
            within = ["-n", namespace(name)]
            ip("netns", "add", namespace(name))
            ip(*within, "link", "add", "lab", "address", f"02:00:00:00:00:{number:02x}", "type", "veth",
               "peer", "name", f"to{number}", "netns", switch)
            ip("-n", switch, "link", "set", f"to{number}", "master", "switch", "up")
            # Without waiting for another host that may have the address.
            subprocess.run([*inside(name), "sysctl", "-qw", "net.ipv6.conf.lab.accept_dad=0"], check=True)
            for link in ["lo", "lab"]:
                ip(*within, "link", "set", link, "up")
            ip(*within, "address", "add", f"10.9.0.{number}/24", "dev", "lab")
        yield
    finally:
        end()


def lose(name, percent):
    """Lets a host of `namespaces` lose some of the UDP packets that reach it, after tcpdump saw them."""
    chain = "add chain inet lab lose { type filter hook input priority 0; }"
    rule = f"add rule inet lab lose udp dport != 5353 numgen random mod 100 < {percent} drop"
    for command in ["add table inet lab", chain, rule]:
        subprocess.run([*inside(name), "nft", command], check=True)


def commanded(text):
    """The options of a lab that commands by itself, with programs for Node.js."""
    parser = options(text)
    parser.add_argument("--packages", type=pathlib.Path, required=True, help="where npm installed them")
    parser.add_argument("--commands", type=int, default=100)
    parser.add_argument("--between", type=float, nargs=2, default=[0.2, 1.2], help="seconds between commands")
    parser.add_argument("--reads", action="store_true", help="read after some of the commands")
    return parser


def pace(options):
    """What a controller is told of `commanded`."""
    least, most = (1000 * seconds for seconds in options.between)
    return {"commands": options.commands, "least": least, "most": most, "reads": options.reads}


def node(folder, packages, script, name, role, options):
    """Starts a program for Node.js in the namespace `name`; its rows go to NAME.ndjson."""
    storage = folder / f"{name}.storage"
    shutil.rmtree(storage, ignore_errors=True)
    # Node.js looks for packages beside the script that it runs.
    copy = packages.resolve() / script
    shutil.copyfile(pathlib.Path(__file__).with_name(script), copy)
    given = {**options, "name": name, "sent": str(folder / f"{name}.ndjson"), "storage": str(storage)}
    log = (folder / f"{name}.log").open("w")
    return subprocess.Popen([*inside(name), "node", copy, role, json.dumps(given)], stdout=subprocess.PIPE, stderr=log,
                            text=True)


def conclude(controller, others):
    """The commands that a controller sent until it ended; the others end then."""
    commands = [json.loads(line) for line in controller.stdout if line.startswith("{")]
    for each in [controller, *others]:
        each.terminate()
        each.wait()
    return commands


def finish(folder, commands, wanted, directions):
    """Joins the rows of all nodes in order of time as sent.ndjson, and writes the commands as labels.csv."""
    if len(commands) < wanted:
        sys.exit(f"only {len(commands)} commands were sent: {folder}/controller.log says why")
    rows = []
    for name, direction in directions.items():
        for line in (folder / f"{name}.ndjson").open():
            row = json.loads(line)
            rows.append({"time_ns": int(row.pop("time")), "direction": direction, "node": name, **row})
    with Sent(folder) as sent:
        for row in sorted(rows, key=lambda row: row["time_ns"]):
            sent.write(row)
    actions = sorted({command["action"] for command in commands})
    with (folder / "labels.csv").open("w") as labels:
        print("time", *actions, sep=",", file=labels)
        for command in commands:
            seconds, rest = divmod(int(command["time"]), 10**9)
            counts = [int(action == command["action"]) for action in actions]
            print(f"{seconds}.{rest:09}", *counts, sep=",", file=labels)
