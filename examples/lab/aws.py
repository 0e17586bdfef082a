#!/usr/bin/env python3
"""A home whose gateway runs AWS's Python SDK for devices, over mosquitto with TLS on loopback.

    python3 aws.py FOLDER       # a line of JSON for each command, as `sizeleak record --do-lines` gives it

It starts the broker and the gateway, and is the cloud: it sends each command as the delta of the hub's shadow, waits
until the gateway has reported the state, and answers `ok`, or why not. All of it ends with stdin. The gateway is
127.0.0.1, the broker 127.0.0.2:8883 (`--port`). FOLDER gets sizes.json (the true bytes of each action) and sent.ndjson
(each command with the bytes of its delta). Needs mosquitto, openssl and python3 with AWSIoTPythonSDK and paho-mqtt."""
import getpass
import json
import pathlib
import queue
import shutil
import subprocess
import sys
import time

import paho.mqtt.client as mqtt

import lab

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


def delta(devices, version=1, now=10**9):
    """A delta as the service sends it: the wanted state, and when each value was asked for."""
    state = {f"{each['device']}{each['index']}": SETS[each["action"]] for each in devices}
    asked = {device: {key: {"timestamp": now} for key in values} for device, values in state.items()}
    told = {"version": version, "timestamp": now, "state": state, "metadata": asked}
    return json.dumps(told, separators=(",", ":"))


def start_broker(folder, port):
    """Mosquitto, with TLS for the gateway, and a plain port of the next number for the cloud."""
    (folder / "mosquitto.conf").write_text(
        f"user {getpass.getuser()}\nallow_anonymous true\n"
        f"listener {port} {lab.SERVER}\ncafile {folder}/ca.pem\ncertfile {folder}/server.pem\n"
        f"keyfile {folder}/server.key\nrequire_certificate true\n"
        f"listener {port + 1} {lab.SERVER}\n"
    )
    # Debian keeps it where only root looks.
    program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
    return lab.start([program, "-c", folder / "mosquitto.conf"], folder, "mosquitto", port + 1)


def start_gateway(folder, port):
    program = pathlib.Path(__file__).with_name("aws_gateway.py")
    log = (folder / "gateway.log").open("w")
    gateway = subprocess.Popen([sys.executable, program, folder, lab.SERVER, str(port)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=log, text=True)
    if gateway.stdout.readline() != "ready\n":
        gateway.kill()
        sys.exit(f"the gateway did not start: {folder}/gateway.log says why")
    return gateway


class Cloud:
    """The service: sends deltas, and takes what the gateway reports."""

    def __init__(self, port, version):
        self.version = version
        self.reports = queue.Queue()
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        self.client.on_message = lambda _client, _data, message: self.reports.put(json.loads(message.payload))
        self.client.connect(lab.SERVER, port)
        self.client.subscribe(UPDATE, qos=1)
        self.client.loop_start()

    def send(self, devices):
        now = int(time.time())
        told = delta(devices, self.version, now)
        self.client.publish(f"{UPDATE}/delta", told, qos=1)
        # The command and the report about it are a version of the shadow each.
        self.version += 2
        try:
            report = self.reports.get(timeout=5)
        except queue.Empty:
            raise OSError("the gateway did not report within 5 s") from None
        taken = {"state": report["state"], "version": self.version - 1, "timestamp": now,
                 "clientToken": report["clientToken"]}
        self.client.publish(f"{UPDATE}/accepted", json.dumps(taken, separators=(",", ":")), qos=1)
        return len(told)


def main():
    parser = lab.options(__doc__)
    parser.add_argument("--version", type=int, default=1, help="of the first delta; its digits are sent")
    options = parser.parse_args()
    folder = lab.begin(options.folder, lab.true_sizes(delta, SETS))
    broker = start_broker(folder, options.port)
    try:
        gateway = start_gateway(folder, options.port)
        try:
            lab.commands(folder, Cloud(options.port + 1, options.version).send)
        finally:
            gateway.kill()
    finally:
        broker.kill()


if __name__ == "__main__":
    main()
