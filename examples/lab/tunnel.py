#!/usr/bin/env python3
"""What goes through a tunnel: commands over TLS from the service to the gateway, and other flows beside them.

`wireguard.py` and `esp.py` run it at both ends of theirs: `tunnel.py service|gateway FOLDER OPTIONS`."""
import json
import pathlib
import random
import socket
import ssl
import struct
import sys
import threading
import time

SERVICE, GATEWAY, PORT = "10.10.0.1", "10.10.0.2", 8883
# What is captured inside of a tunnel: a kernel also tells groups of an interface that is new.
INNER = f"host {SERVICE} and host {GATEWAY}"


def options(parser):
    parser.add_argument("--messages", type=int, default=500, help="commands, each of which is answered")
    parser.add_argument("--between", type=float, nargs=2, default=[0.0, 0.01], help="seconds between commands")
    parser.add_argument("--background", type=int, default=3, help="other flows, of UDP packets of random sizes")
    parser.add_argument("--seed", type=int, default=1)


def run(start, folder, given):
    """Both ends, by `start`, which takes the name of an end and its command; returns when all commands are answered."""
    told = json.dumps({"messages": given.messages, "between": given.between, "background": given.background,
                       "seed": given.seed})
    service, gateway = (start(name, [sys.executable, __file__, name, folder, told]) for name in ["service", "gateway"])
    ended = service.wait()
    gateway.terminate()
    gateway.wait()
    if ended != 0:
        sys.exit(f"the commands did not get through: {folder}/service.txt says why")


def rows(pcap, service=SERVICE):
    """A row for each IP packet of a capture of raw IP, of which `service` sends or gets each."""
    data, place = pcap.read_bytes(), 24
    address = socket.inet_aton(service)
    assert struct.unpack("<I", data[20:24])[0] in (12, 101), "not a capture of raw IP"
    while place < len(data):
        seconds, micros, captured, length = struct.unpack("<IIII", data[place:place + 16])
        packet = data[place + 16:place + 16 + captured]
        place += 16 + captured
        yield {"time_ns": (seconds * 10**6 + micros) * 1000, "plaintext": length, "protocol": packet[9],
               "direction": "to_gateway" if packet[12:16] == address else "from_gateway"}


def background(own, other, count, seed):
    """Flows of packets that nobody answers, each at a pace and of sizes of its own."""
    def flow(number):
        chance = random.Random(seed * 100 + number)
        least = chance.randrange(20, 400)
        most = least + chance.choice([0, 20, 900])
        # Bound, so that the other end's packets are not refused.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind((own, 20000 + number))
            while True:
                udp.sendto(bytes(chance.randrange(least, most + 1)), (other, 20000 + number))
                time.sleep(chance.expovariate(20))

    for number in range(count):
        threading.Thread(target=flow, args=[number], daemon=True).start()


def exactly(stream, size):
    got = b""
    while len(got) < size:
        more = stream.recv(size - len(got))
        if not more:
            raise ConnectionError("the other end is gone")
        got += more
    return got


def service(folder, given):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    chance = random.Random(given["seed"])
    with socket.create_server((SERVICE, PORT)) as listener, (folder / "commands.ndjson").open("w") as commands:
        listener.settimeout(20)
        stream = context.wrap_socket(listener.accept()[0], server_side=True)
        stream.settimeout(20)
        background(SERVICE, GATEWAY, given["background"], given["seed"])
        for _ in range(given["messages"]):
            time.sleep(chance.uniform(*given["between"]))
            size, answer = chance.randrange(40, 900), chance.randrange(10, 500)
            commands.write(json.dumps({"time_ns": time.time_ns(), "bytes": size, "answer": answer}) + "\n")
            stream.sendall(struct.pack(">HH", size, answer) + bytes(size - 4))
            exactly(stream, answer)


def gateway(folder, given):
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    for attempt in range(50):
        try:
            plain = socket.create_connection((SERVICE, PORT), timeout=20)
            break
        except OSError:
            time.sleep(0.1)
    stream = context.wrap_socket(plain, server_hostname="hub.example")
    background(GATEWAY, SERVICE, given["background"], given["seed"] + 1)
    while True:
        size, answer = struct.unpack(">HH", exactly(stream, 4))
        exactly(stream, size - 4)
        stream.sendall(bytes(answer))


if __name__ == "__main__":
    {"service": service, "gateway": gateway}[sys.argv[1]](pathlib.Path(sys.argv[2]), json.loads(sys.argv[3]))
