#!/usr/bin/env python3
"""A Matter home as matter.js speaks it: a lamp, a lock and their controller, each in a network namespace of its own.

    python3 matter.py FOLDER --packages DIR --commands 100

The controller finds and commissions both devices, subscribes to them, and then commands one of them at a time, at
random. The devices are the gateways (fe80::ff:fe00:2 the lamp, fe80::ff:fe00:3 the lock), port 5540. FOLDER gets
capture.pcap, labels.csv (each command, as `sizeleak` reads labels) and sent.ndjson: a row for each message, with
the `plaintext` that matter.js gave to its cipher. `--tcp` uses Matter over TCP. Needs root (namespaces), tcpdump,
Node.js 20 and `npm install --prefix DIR @matter/main`."""
import sys

import lab

# Each node: the number of its addresses; and what commissions a device.
NODES = {"controller": 1, "lamp": 2, "lock": 3}
CODES = {"lamp": {"passcode": 20202021, "discriminator": 3840}, "lock": {"passcode": 20202023, "discriminator": 3841}}


def main():
    parser = lab.commanded(__doc__)
    parser.add_argument("--tcp", action="store_true")
    parser.add_argument("--lost", type=int, default=0, help="percent of packets that do not arrive")
    parser.add_argument("--group", action="store_true", help="half of the time, switch the lamp by its group")
    options = parser.parse_args()
    folder = lab.begin(options.folder)

    def start(name, role, **more):
        return lab.node(folder, options.packages, "matter_node.mjs", name, role, {"tcp": options.tcp, **more})

    with lab.namespaces(NODES), lab.capture(folder, "port 5540", "lab", lab.inside("controller")):
        for name in NODES if options.lost else []:
            lab.lose(name, options.lost)
        devices = [start(name, "device", **CODES[name]) for name in CODES]
        for device in devices:
            if "ready" not in device.stdout.readline():
                sys.exit(f"a device did not start: the logs in {folder} say why")
        controller = start("controller", "controller", devices=CODES, lost=options.lost, group=options.group,
                           **lab.pace(options))
        commands = lab.conclude(controller, devices)
    lab.finish(folder, commands, options.commands,
               {name: "to_gateway" if name == "controller" else "from_gateway" for name in NODES})


if __name__ == "__main__":
    main()
