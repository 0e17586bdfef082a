#!/usr/bin/env python3
"""A home whose gateway runs AWS's Python SDK for devices, over mosquitto with TLS on loopback.

    python3 aws.py FOLDER       # a line of JSON for each command, as `sizeleak record --do-lines` gives it

It starts the broker and the gateway, and is the cloud: it sends each command as the delta of the hub's shadow, waits
until the gateway has reported the state, and answers `ok`, or why not. All of it ends with stdin. The gateway is
127.0.0.1, the broker 127.0.0.2:8883 (`--port`). FOLDER gets sizes.json (the true bytes of each action) and sent.ndjson
(each command with the bytes of its delta). Needs mosquitto, openssl and python3 with AWSIoTPythonSDK and paho-mqtt."""
import json
import time

import broker
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


class Cloud(broker.Cloud):
    """The service: sends deltas, and takes what the gateway reports."""

    def __init__(self, port, version):
        super().__init__(port, UPDATE)
        self.version = version

    def send(self, devices):
        now = int(time.time())
        told = delta(devices, self.version, now)
        report = json.loads(self.exchange(f"{UPDATE}/delta", told, qos=1).payload)
        # The command and the report about it are a version of the shadow each.
        taken = {"state": report["state"], "version": self.version + 1, "timestamp": now,
                 "clientToken": report["clientToken"]}
        self.client.publish(f"{UPDATE}/accepted", json.dumps(taken, separators=(",", ":")), qos=1)
        self.version += 2
        return len(told)


def main():
    parser = lab.options(__doc__)
    parser.add_argument("--version", type=int, default=1, help="of the first delta; its digits are sent")
    options = parser.parse_args()
    folder = lab.begin(options.folder, lab.true_sizes(delta, SETS))
    broker.run(folder, options.port, "aws_gateway.py", lambda port: Cloud(port, options.version))


if __name__ == "__main__":
    main()
