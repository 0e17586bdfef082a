#!/usr/bin/env python3
"""Tuya's local protocol, on loopback: tinytuya commands a plug, versions 3.1, 3.3, 3.4 and 3.5.

    python3 tuya.py FOLDER --messages 1000

No maker's device software can be had, so the plug (127.0.0.2:6668, `--port`, the gateway) is this script; its
messages too are made and encrypted by tinytuya. FOLDER gets capture.pcap and sent.ndjson: a row for each message,
with the bytes that tinytuya encrypts as `plaintext` (before it pads them; those of the message where it encrypts
none). Needs tcpdump and `pip install tinytuya`."""
import json
import os
import random
import select
import socket
import struct
import threading
from hashlib import sha256
import hmac

import tinytuya
from tinytuya.core.XenonDevice import XenonDevice
from tinytuya.core import crypto_helper
from tinytuya.core import header
from tinytuya.core.message_helper import MessagePayload, TuyaMessage, pack_message, parse_header, unpack_message

import lab

VERSIONS = [3.1, 3.3, 3.4, 3.5]
KEY = b"0123456789abcdef"


class Log:
    """A row for each message: what the last call of the cipher was given, in the same thread."""

    def __init__(self, sent):
        self.sent, self.last, self.lock = sent, threading.local(), threading.Lock()
        encrypt, encode = crypto_helper.AESCipher.encrypt, XenonDevice._encode_message

        def encrypting(cipher, raw, *words, **more):
            self.last.size = len(raw)
            return encrypt(cipher, raw, *words, **more)

        def encoding(device, message):
            return self.row("to_gateway", device.version, message, lambda: encode(device, message),
                            device.socket.getsockname()[1] if device.socket else None)

        crypto_helper.AESCipher.encrypt = encrypting
        XenonDevice._encode_message = encoding

    def row(self, direction, version, message, encode, port, send=lambda _: None):
        time, self.last.size = lab.now(), None
        data = encode()
        encrypted = self.last.size is not None
        row = {"time_ns": time, "direction": direction, "kind": message.cmd, "version": version,
               "plaintext": self.last.size if encrypted else len(message.payload), "encrypted": encrypted,
               "packet": len(data), "client_port": port}
        send(data)
        with self.lock:
            self.sent.write(row)
        return data


class Plug(threading.Thread):
    """Answers each message as a plug does: an answer, and for a command its new state too."""

    def __init__(self, log, port, seed):
        super().__init__(daemon=True)
        self.log, self.chance = log, random.Random(seed)
        self.listener = socket.create_server((lab.SERVER, port))
        self.version = None

    def run(self):
        while True:
            stream, peer = self.listener.accept()
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self.serve(stream, peer[1])
            except (ConnectionError, struct.error):
                pass

    def serve(self, stream, port):
        self.stream, self.port, self.key, self.number = stream, port, KEY, 0
        while True:
            size = 18 if self.version == 3.5 else 16
            start = self.exactly(size)
            told = parse_header(start)
            data = start + self.exactly(told.total_length - size)
            secret = self.key if self.version >= 3.4 else None
            message = unpack_message(data, hmac_key=secret, header=told, no_retcode=True)
            self.handle(message)

    def exactly(self, size):
        got = b""
        while len(got) < size:
            more = self.stream.recv(size - len(got))
            if not more:
                raise ConnectionError
            got += more
        return got

    def handle(self, message):
        commands = tinytuya
        if message.cmd == commands.SESS_KEY_NEG_START:
            self.theirs = message.payload
            if self.version == 3.4:
                self.theirs = crypto_helper.AESCipher(KEY).decrypt(message.payload, False, decode_text=False)
            self.own = os.urandom(16)
            self.tell(commands.SESS_KEY_NEG_RESP, self.own + hmac.new(KEY, self.theirs, sha256).digest())
        elif message.cmd == commands.SESS_KEY_NEG_FINISH:
            mixed = bytes(ours ^ theirs for ours, theirs in zip(self.own, self.theirs))
            cipher = crypto_helper.AESCipher(KEY)
            if self.version == 3.4:
                self.key = cipher.encrypt(mixed, False, pad=False)
            else:
                self.key = cipher.encrypt(mixed, use_base64=False, pad=False, iv=self.theirs[:12])[12:28]
        elif message.cmd == commands.HEART_BEAT:
            self.tell(message.cmd, b"")
        elif message.cmd in (commands.CONTROL, commands.CONTROL_NEW):
            self.tell(message.cmd, b"")
            self.tell(commands.STATUS, self.state(self.chance.randrange(1, 3)))
        else:
            self.tell(message.cmd, self.state(self.chance.randrange(1, 12)))

    def state(self, points):
        return json.dumps({"dps": {str(point): self.chance.choice([True, False, 7, 12345, "colour"])
                                   for point in range(1, points + 1)}}, separators=(",", ":")).encode()

    def tell(self, command, payload):
        message = MessagePayload(command, payload)
        encode, send = (lambda: self.encode(message)), self.stream.sendall
        self.log.row("from_gateway", self.version, message, encode, self.port, send)
        self.number += 1

    def encode(self, message):
        command, payload = message
        # A state that nobody asked for says its version; an answer starts with a return code.
        named = f"{self.version}".encode() + bytes(12) if command == tinytuya.STATUS else b""
        code = b"" if named else bytes(4)
        if self.version == 3.5:
            made = TuyaMessage(self.number, command, None if named else 0, named + payload, 0, True,
                               header.PREFIX_6699_VALUE, True)
            return pack_message(made, hmac_key=self.key)
        cipher = crypto_helper.AESCipher(self.key)
        if self.version == 3.4:
            payload = code + cipher.encrypt(named + payload, False)
        elif self.version == 3.3:
            payload = code + named + cipher.encrypt(payload, False)
        else:
            payload = bytes(4) + payload
        made = TuyaMessage(self.number, command, 0, payload, 0, True, header.PREFIX_55AA_VALUE, None)
        return pack_message(made, hmac_key=self.key if self.version == 3.4 else None)


def command(device, chance):
    """One of what a plug or a lamp is told, or asked."""
    chance.choice([
        device.turn_on, device.turn_off, device.status, device.heartbeat,
        lambda: device.set_value(chance.randrange(1, 30), chance.randrange(0, 1000)),
        lambda: device.set_value(24, f"{chance.randrange(1 << 48):012x}"),
        lambda: device.set_multiple_values({str(point): point for point in range(1, chance.randrange(2, 9))}),
        lambda: device.set_timer(chance.randrange(3600), 9),
    ])()


def main():
    parser = lab.options(__doc__)
    parser.set_defaults(port=6668)
    parser.add_argument("--messages", type=int, default=1000, help="to the plug, for all versions together")
    parser.add_argument("--versions", type=float, nargs="*", default=VERSIONS, choices=VERSIONS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = lab.begin(options.folder)
    chance = random.Random(options.seed)
    with lab.Sent(folder) as sent, lab.capture(folder, f"tcp port {options.port}"):
        log = Log(sent)
        plug = Plug(log, options.port, options.seed)
        plug.start()
        for version in options.versions:
            plug.version = version
            device = tinytuya.OutletDevice("0123456789abcdefghij", lab.SERVER, KEY.decode(), version=version,
                                           persist=True, port=options.port)
            device.set_sendWait(None)
            for _ in range(options.messages // len(options.versions)):
                command(device, chance)
                # What tinytuya does not wait for would pile up.
                while device.socket and select.select([device.socket], [], [], 0.002)[0] and device.socket.recv(65536):
                    pass
            device.close()


if __name__ == "__main__":
    main()
