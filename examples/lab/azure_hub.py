#!/usr/bin/env python3
"""A home whose gateway runs Azure's Python SDK for devices, over mosquitto with TLS on loopback.

    python3 azure_hub.py FOLDER       # a line of JSON for each command, as `sizeleak record --do-lines` gives it

It starts the broker and the gateway, and is the hub: it sends each command as a direct method of the gateway's device
(`--twin`: as desired properties of its twin), waits until the gateway has answered or reported, and answers `ok`, or
why not. All of it ends with stdin. The gateway is 127.0.0.1, the broker 127.0.0.2:8883 (`--port`). FOLDER gets
sizes.json (the true bytes of each action) and sent.ndjson (each command with the bytes of its payload). Needs
mosquitto, openssl and python3 with azure-iot-device, which brings paho-mqtt."""
import json

import broker
import lab
from aws import SETS


def method(devices):
    """The payload of a method, as the service sends it."""
    return json.dumps({f"{each['device']}{each['index']}": SETS[each["action"]] for each in devices},
                      separators=(",", ":"))


def patch(devices, version=1):
    """Desired properties, as the service sends them."""
    return f'{method(devices)[:-1]},"$version":{version}}}'


class Methods(broker.Cloud):
    """The service: calls a method, and takes the response."""

    def __init__(self, port, number):
        super().__init__(port, "$iothub/methods/res/#")
        self.number = number

    def send(self, devices):
        told = method(devices)
        self.exchange(f"$iothub/methods/POST/set/?$rid={self.number:x}", told, qos=0)
        self.number += 1
        return len(told)


class Twin(broker.Cloud):
    """The service: sends desired properties, takes those that are reported, and says that it has."""

    def __init__(self, port, version):
        super().__init__(port, "$iothub/twin/PATCH/properties/reported/#")
        self.version = version

    def send(self, devices):
        told = patch(devices, self.version)
        report = self.exchange(f"$iothub/twin/PATCH/properties/desired/?$version={self.version}", told, qos=0)
        request = report.topic.partition("?")[2]
        self.client.publish(f"$iothub/twin/res/204/?{request}&$version={self.version}", None, qos=0)
        self.version += 1
        return len(told)


def main():
    parser = lab.options(__doc__)
    parser.add_argument("--twin", action="store_true", help="commands are desired properties")
    parser.add_argument("--number", type=int, default=1, help="of the first command; its digits are sent")
    options = parser.parse_args()
    service, message = (Twin, patch) if options.twin else (Methods, method)
    folder = lab.begin(options.folder, lab.true_sizes(message, SETS))
    broker.run(folder, options.port, "azure_gateway.py", lambda port: service(port, options.number))


if __name__ == "__main__":
    main()
