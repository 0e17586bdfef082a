#!/usr/bin/env python3
"""A HomeKit bridge with a lamp and a lock (hap-nodejs), and its controller (hap-controller), in two network namespaces.

    python3 homekit.py FOLDER --packages DIR --commands 100

The controller pairs, subscribes to events over a connection of its own, and then sets one characteristic, or two,
at a time, at random. The bridge is the gateway: 10.9.0.2, port 51826. FOLDER gets capture.pcap, labels.csv (each
command, as `sizeleak` reads labels) and sent.ndjson: a row for each frame, with the `plaintext` in it. Pairing
itself is not encrypted. Needs root (namespaces), tcpdump, Node.js 20 and `npm install --prefix DIR hap-nodejs
hap-controller`."""
import sys

import lab


def main():
    parser = lab.commanded(__doc__)
    options = parser.parse_args()
    folder = lab.begin(options.folder)
    hosts = {"controller": 1, "accessory": 2}

    def start(role, **more):
        return lab.node(folder, options.packages, "homekit_node.mjs", role, role, more)

    with lab.namespaces(hosts), lab.capture(folder, "tcp port 51826", "lab", lab.inside("controller")):
        accessory = start("accessory", bind="10.9.0.2")
        if "ready" not in accessory.stdout.readline():
            sys.exit(f"the accessory did not start: {folder}/accessory.log says why")
        controller = start("controller", accessory="10.9.0.2", **lab.pace(options))
        commands = lab.conclude(controller, [accessory])
    lab.finish(folder, commands, options.commands, {"controller": "to_gateway", "accessory": "from_gateway"})


if __name__ == "__main__":
    main()
