#!/usr/bin/env python3
"""A WireGuard tunnel between two network namespaces, with what goes through it captured at the same time inside of it.

    python3 wireguard.py FOLDER --messages 1000 --background 5

wireguard-go (10.9.0.2 is the gateway, 10.9.0.1 the service, UDP port 51820) carries a TLS connection, over which
the service sends messages of random sizes to the gateway, which answers; and other flows. FOLDER gets capture.pcap
(the tunnel), inner.pcap (the IP packets in it, as the service's end sees them), commands.ndjson and sent.ndjson: a
row for each inner packet, with its bytes as `plaintext`. Needs root (namespaces, /dev/net/tun), tcpdump, openssl,
wireguard-go and wireguard-tools."""
import os
import subprocess
import sys
import time

import lab
import tunnel

HOSTS = {"service": 1, "gateway": 2}


def keys(folder, name):
    private = subprocess.run(["wg", "genkey"], check=True, capture_output=True, text=True).stdout
    (folder / f"{name}.private").write_text(private)
    return subprocess.run(["wg", "pubkey"], input=private, check=True, capture_output=True, text=True).stdout.strip()


def interface(name):
    """Its name is that of a control socket, which all namespaces share."""
    return f"wg{os.getpid()}-{HOSTS[name]}"


def start(folder, name, peer, peer_key):
    log = (folder / f"{name}.log").open("w")
    own = interface(name)
    running = subprocess.Popen([*lab.inside(name), "wireguard-go", "-f", own], stdout=log, stderr=log)
    control = f"/var/run/wireguard/{own}.sock"
    end = time.monotonic() + 10
    while not os.path.exists(control):
        if time.monotonic() > end or running.poll() is not None:
            sys.exit(f"wireguard-go did not start: {folder}/{name}.log says why")
        time.sleep(0.05)
    within = lab.inside(name)
    for command in [
        ["wg", "set", own, "private-key", folder / f"{name}.private", "listen-port", "51820", "peer", peer_key,
         "allowed-ips", "10.10.0.0/24", "endpoint", f"10.9.0.{HOSTS[peer]}:51820", "persistent-keepalive", "1"],
        ["ip", "address", "add", f"10.10.0.{HOSTS[name]}/24", "dev", own],
        ["ip", "link", "set", own, "up"],
    ]:
        subprocess.run([*within, *command], check=True)
    return running


def main():
    parser = lab.options(__doc__)
    tunnel.options(parser)
    options = parser.parse_args()
    folder = lab.begin(options.folder)
    public = {name: keys(folder, name) for name in HOSTS}

    def run(name, command):
        return subprocess.Popen([*lab.inside(name), *command], stderr=(folder / f"{name}.txt").open("w"))

    within = lab.inside("service")
    with lab.namespaces(HOSTS), lab.capture(folder, "udp port 51820", "lab", within):
        both = [("service", "gateway"), ("gateway", "service")]
        ends = [start(folder, name, peer, public[peer]) for name, peer in both]
        with lab.capture(folder, tunnel.INNER, interface("service"), within, "inner.pcap"):
            tunnel.run(run, folder, options)
        # Keep-alive packets.
        time.sleep(3)
        for end in ends:
            end.terminate()
            end.wait()
    with lab.Sent(folder) as sent:
        for row in tunnel.rows(folder / "inner.pcap"):
            sent.write(row)


if __name__ == "__main__":
    main()
