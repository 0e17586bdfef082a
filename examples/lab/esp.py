#!/usr/bin/env python3
"""IPsec ESP between two network namespaces, with what goes through it captured at the same time inside of it.

    python3 esp.py FOLDER --suite aes128gcm16 --messages 1000

strongSwan, with ESP of its own rather than the kernel's (10.9.0.2 is the gateway, 10.9.0.1 the service, UDP port
4500, tunnel mode), carries a TLS connection, over which the service sends messages of random sizes to the gateway,
which answers; and other flows. `--raw tunnel|transport` uses IP protocol 50 instead, by scapy, without IKE. FOLDER
gets capture.pcap (the tunnel and IKE), inner.pcap (the IP packets in it, as the service's end sees them),
commands.ndjson and sent.ndjson: a row for each inner packet, with its bytes as `plaintext` (in transport mode
without its IP header). Needs root (namespaces, /dev/net/tun), tcpdump, openssl, and Debian's strongswan-charon,
strongswan-swanctl, libcharon-extra-plugins and libstrongswan-extra-plugins, or `pip install scapy cryptography`."""
import pathlib
import subprocess
import sys
import time

import lab
import tunnel

HOSTS = {"service": 1, "gateway": 2}
# Where Debian keeps it.
CHARON = "/usr/lib/ipsec/charon"
DAEMON = """
charon {{
  load = random nonce aes sha1 sha2 hmac kdf gmp curve25519 openssl gcm ccm ctr chapoly kernel-libipsec kernel-netlink \
socket-default vici
  port = 500
  port_nat_t = 4500
  plugins {{
    vici {{ socket = unix://{folder}/{name}.vici }}
    kernel-libipsec {{ allow_peer_ts = yes }}
  }}
  filelog {{ stderr {{ default = 1 }} }}
}}
"""
CONNECTION = """
connections {{
  lab {{
    version = 2
    encap = yes
    proposals = aes128-sha256-x25519
    local_addrs = 10.9.0.{own}
    remote_addrs = 10.9.0.{other}
    local {{ auth = psk
      id = {name} }}
    remote {{ auth = psk
      id = {peer} }}
    children {{
      lab {{ local_ts = 10.10.0.{own}/32
        remote_ts = 10.10.0.{other}/32
        esp_proposals = {suite} }}
    }}
  }}
}}
secrets {{ ike-lab {{ secret = "lab" }} }}
"""


def swanctl(folder, name, *words):
    subprocess.run([*lab.inside(name), "swanctl", *words, "--uri", f"unix://{folder}/{name}.vici"], check=True,
                   stdout=subprocess.DEVNULL, stderr=(folder / f"{name}.txt").open("a"))


def start_raw(folder, name, _, options):
    node = pathlib.Path(__file__).with_name("esp_node.py")
    running = subprocess.Popen([*lab.inside(name), sys.executable, node, str(HOSTS[name]), options.raw, options.suite],
                               stdout=subprocess.PIPE, stderr=(folder / f"{name}.log").open("w"), text=True)
    if "ready" not in running.stdout.readline():
        sys.exit(f"scapy did not start: {folder}/{name}.log says why")
    return running


def start(folder, name, peer, options):
    words = {"folder": folder, "name": name, "peer": peer, "own": HOSTS[name], "other": HOSTS[peer],
             "suite": options.suite}
    (folder / f"{name}.strongswan").write_text(DAEMON.format(**words))
    (folder / f"{name}.conf").write_text(CONNECTION.format(**words))
    subprocess.run([*lab.inside(name), "ip", "address", "add", f"10.10.0.{HOSTS[name]}/32", "dev", "lo"], check=True)
    # Two of them cannot share /run.
    run = f"mount -t tmpfs none /run && STRONGSWAN_CONF={folder}/{name}.strongswan exec {CHARON}"
    log = (folder / f"{name}.log").open("w")
    running = subprocess.Popen([*lab.inside(name), "sh", "-c", run], stdout=log, stderr=log)
    end = time.monotonic() + 10
    while not (folder / f"{name}.vici").is_socket():
        if time.monotonic() > end or running.poll() is not None:
            sys.exit(f"charon did not start: {folder}/{name}.log says why")
        time.sleep(0.05)
    swanctl(folder, name, "--load-all", "--noprompt", "--file", folder / f"{name}.conf")
    return running


def main():
    parser = lab.options(__doc__)
    tunnel.options(parser)
    parser.add_argument("--suite", default="aes128gcm16", help="as strongSwan names it: aes128gcm16, aes128-sha256")
    parser.add_argument("--raw", choices=["tunnel", "transport"], help="IP protocol 50 in this mode, by scapy")
    options = parser.parse_args()
    folder = lab.begin(options.folder)

    def run(name, command):
        return subprocess.Popen([*lab.inside(name), *command], stderr=(folder / f"{name}.txt").open("w"))

    within = lab.inside("service")
    for name in HOSTS:
        (folder / f"{name}.vici").unlink(missing_ok=True)
    what = "proto 50" if options.raw else "udp port 500 or udp port 4500"
    with lab.namespaces(HOSTS), lab.capture(folder, what, "lab", within):
        begin = start_raw if options.raw else start
        ends = [begin(folder, name, peer, options) for name, peer in [("service", "gateway"), ("gateway", "service")]]
        with lab.capture(folder, tunnel.INNER, "inner" if options.raw else "ipsec0", within, "inner.pcap"):
            if not options.raw:
                swanctl(folder, "gateway", "--initiate", "--child", "lab")
            tunnel.run(run, folder, options)
        for end in ends:
            end.terminate()
            end.wait()
    with lab.Sent(folder) as sent:
        for row in tunnel.rows(folder / "inner.pcap"):
            # The header stays outside in transport mode.
            row["plaintext"] -= 20 if options.raw == "transport" else 0
            sent.write(row)


if __name__ == "__main__":
    main()
