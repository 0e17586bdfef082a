"""What every lab needs: its options, certificates, programs that are waited for, and what it sent."""
import argparse
import fcntl
import json
import os
import pathlib
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


def begin(folder, sizes):
    """Makes the folder, with the true sizes and certificates; returns its whole path."""
    # So that what was started ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # An earlier one of the same folder may still end, as after a kill.
    fcntl.flock(os.open(folder / "lock", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
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
