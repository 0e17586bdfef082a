#!/usr/bin/env python3
"""A home whose gateway runs AWS's Python SDK for devices, over mosquitto with TLS on loopback.

    python3 aws.py FOLDER       # a line of JSON for each command, as `sizeleak record --do-lines` gives it

It starts the broker and the gateway, and is the cloud: it sends each command as the delta of the hub's shadow, waits
until the gateway has reported the state, and answers `ok`, or why not. All of it ends with stdin. The gateway is
127.0.0.1, the broker 127.0.0.2:8883 (`--port`). FOLDER gets sizes.json (the true bytes of each action) and sent.ndjson
(each command with the bytes of its delta). Needs mosquitto, openssl and python3 with AWSIoTPythonSDK
and paho-mqtt."""
import argparse
import getpass
import json
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import time

import paho.mqtt.client as mqtt

BROKER = "127.0.0.2"
UPDATE = "$aws/things/hub/shadow/update"
# What each action sets.
SETS = {
    "on": {"power": "on"},
    "off": {"power": "off"},
    "toggle": {"power": "toggle"},
    "timer": {"off-after": 1800},
    "dim": {"level": 45},
    "white": {"white": 370},
    "colour": {"colour": "ff8000"},
}


def delta(devices, version, now):
    """A delta as the service sends it: the wanted state, and when each value was asked for."""
    state = {f"{each['device']}{each['index']}": SETS[each["action"]] for each in devices}
    asked = {device: {key: {"timestamp": now} for key in values} for device, values in state.items()}
    told = {"version": version, "timestamp": now, "state": state, "metadata": asked}
    return json.dumps(told, separators=(",", ":"))


def true_sizes():
    """The bytes that one more device adds to a delta, for each action."""
    first = {"device": "lamp", "index": 0, "action": "on"}
    alone = len(delta([first], 1, 10**9))
    more = {action: {"device": "lamp", "index": 1, "action": action} for action in SETS}
    return {action: len(delta([first, device], 1, 10**9)) - alone for action, device in more.items()}


def certify(folder):
    """An authority of its own, and a certificate of the broker and of the gateway."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "rsa:2048", "-nodes", "-days", "30"]
    openssl("req", "-x509", *key, "-subj", "/CN=lab", "-keyout", "ca.key", "-out", "ca.pem")
    (folder / "names").write_text(f"subjectAltName=IP:{BROKER}\n")
    for name in ("broker", "gateway"):
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "30", "-extfile", "names", "-out", f"{name}.pem")


def start_broker(folder, port):
    """Mosquitto, with TLS for the gateway, and a plain port of the next number for the cloud."""
    (folder / "mosquitto.conf").write_text(
        f"user {getpass.getuser()}\nallow_anonymous true\n"
        f"listener {port} {BROKER}\ncafile {folder}/ca.pem\ncertfile {folder}/broker.pem\n"
        f"keyfile {folder}/broker.key\nrequire_certificate true\n"
        f"listener {port + 1} {BROKER}\n"
    )
    # Debian keeps it where only root looks.
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    log = (folder / "mosquitto.log").open("w")
    broker = subprocess.Popen([program, "-c", folder / "mosquitto.conf"], stdout=log, stderr=log)
    for _ in range(100):
        try:
            socket.create_connection((BROKER, port + 1)).close()
            return broker
        except ConnectionRefusedError:
            if broker.poll() is not None:
                break
            time.sleep(0.05)
    broker.kill()
    sys.exit(f"mosquitto did not start: {folder}/mosquitto.log says why")


def start_gateway(folder, port):
    program = pathlib.Path(__file__).with_name("aws_gateway.py")
    log = (folder / "gateway.log").open("w")
    gateway = subprocess.Popen([sys.executable, program, folder, BROKER, str(port)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=log, text=True)
    if gateway.stdout.readline() != "ready\n":
        gateway.kill()
        sys.exit(f"the gateway did not start: {folder}/gateway.log says why")
    return gateway


def serve(folder, port, version):
    """The cloud: sends a delta for each line, and takes what the gateway reports."""
    reports = queue.Queue()
    cloud = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    cloud.on_message = lambda _client, _data, message: reports.put(json.loads(message.payload))
    cloud.connect(BROKER, port + 1)
    cloud.subscribe(UPDATE, qos=1)
    cloud.loop_start()
    with (folder / "sent.ndjson").open("a") as sent:
        for line in sys.stdin:
            now = int(time.time())
            devices = json.loads(line)["devices"]
            told = delta(devices, version, now)
            sent.write(json.dumps({"devices": devices, "bytes": len(told)}) + "\n")
            sent.flush()
            cloud.publish(f"{UPDATE}/delta", told, qos=1)
            # The command and the report about it are a version of the shadow each.
            version += 2
            try:
                report = reports.get(timeout=5)
            except queue.Empty:
                print("the gateway did not report within 5 s", flush=True)
                continue
            taken = {"state": report["state"], "version": version - 1, "timestamp": now,
                     "clientToken": report["clientToken"]}
            cloud.publish(f"{UPDATE}/accepted", json.dumps(taken, separators=(",", ":")), qos=1)
            print("ok", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--port", type=int, default=8883)
    parser.add_argument("--version", type=int, default=1, help="of the first delta; its digits are sent")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the broker and the gateway end too
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sizes.json").write_text(json.dumps(true_sizes()) + "\n")
    certify(folder)
    broker = start_broker(folder, options.port)
    try:
        gateway = start_gateway(folder, options.port)
        try:
            serve(folder, options.port, options.version)
        finally:
            gateway.kill()
    finally:
        broker.kill()


if __name__ == "__main__":
    main()
