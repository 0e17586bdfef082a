#!/usr/bin/env python3
"""One end of IPsec ESP without UDP (IP protocol 50), by scapy: `esp_node.py NUMBER MODE SUITE`, as esp.py runs it.

What reaches its interface `inner` is encrypted and sent to the other end, and what comes from there is decrypted. Keys
are fixed: the packets' sizes are what counts."""
import fcntl
import os
import select
import socket
import struct
import sys

from scapy.all import IP
from scapy.layers.ipsec import ESP, SecurityAssociation

# Each suite as scapy names it, with the bytes of its key (and salt).
SUITES = {
    "aes128gcm16": {"crypt_algo": "AES-GCM", "crypt_key": bytes(range(20))},
    "aes128ccm16": {"crypt_algo": "AES-CCM", "crypt_key": bytes(range(19))},
    "chacha20poly1305": {"crypt_algo": "CHACHA20-POLY1305", "crypt_key": bytes(range(36))},
    "aes128-sha256": {"crypt_algo": "AES-CBC", "crypt_key": bytes(16), "auth_algo": "SHA2-256-128",
                      "auth_key": bytes(32)},
    "aes128-sha1": {"crypt_algo": "AES-CBC", "crypt_key": bytes(16), "auth_algo": "HMAC-SHA1-96",
                    "auth_key": bytes(20)},
}


def interface():
    tun = os.open("/dev/net/tun", os.O_RDWR)
    # IFF_TUN without a header of its own, by TUNSETIFF.
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"inner", 0x1001))
    return tun


def main(number, mode, suite):
    other = 3 - number

    def association(spi, source, target):
        header = IP(src=f"10.9.0.{source}", dst=f"10.9.0.{target}") if mode == "tunnel" else None
        return SecurityAssociation(ESP, spi=spi, tunnel_header=header, **SUITES[suite])

    out, back = association(0x1000 + number, number, other), association(0x1000 + other, other, number)
    tun = interface()
    for command in [f"ip address add 10.10.0.{number}/24 dev inner", "ip link set inner mtu 1400 up",
                    # The same addresses beside the tunnel, for packets in transport mode.
                    "ip route add 10.10.0.0/24 dev lab metric 1000", "sysctl -qw net.ipv4.conf.all.rp_filter=0",
                    "sysctl -qw net.ipv4.conf.lab.rp_filter=0"]:
        assert os.system(command) == 0, command
    sending = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    sending.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lab")
    getting = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ESP)
    getting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    print("ready", flush=True)
    while True:
        for ready in select.select([tun, getting], [], [])[0]:
            if ready == tun:
                packet = os.read(tun, 65536)
                # Nothing else belongs to the tunnel.
                if packet[0] >> 4 == 4 and packet[16:20] == socket.inet_aton(f"10.10.0.{other}"):
                    sent = out.encrypt(IP(packet))
                    sending.sendto(bytes(sent), (sent.dst, 0))
            else:
                os.write(tun, bytes(back.decrypt(IP(getting.recv(65536)))))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
