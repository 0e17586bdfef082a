"""A TLS 1.3 server that pads its records by a policy, through OpenSSL's callback: like `openssl s_server -quiet`.

Usage: padding_server.py ADDRESS PORT CERTIFICATE KEY POLICY
"""

import bisect
import ctypes
import ctypes.util
import json
import os
import select
import socket
import sys

PEM = 1
APPLICATION_DATA = 23
SET_MIN_PROTO_VERSION = 123
TLS_1_3 = 0x0304

ssl = ctypes.CDLL(ctypes.util.find_library("ssl"))
PADDING = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)
for name in ("TLS_server_method", "SSL_CTX_new", "SSL_new"):
    getattr(ssl, name).restype = ctypes.c_void_p


def checked(result):
    if not result or result < 0:
        sys.exit("OpenSSL failed")
    return result


def padded(policy, size):
    """The policies of `sizeleak` that the test uses."""
    if policy["kind"] == "multiple":
        return -(-size // policy["bytes"]) * policy["bytes"]
    buckets = policy["buckets"]
    at = bisect.bisect_left(buckets, size)
    return buckets[at] if at < len(buckets) else -(-size // buckets[-1]) * buckets[-1]


def main():
    address, port, certificate, key, policy_file = sys.argv[1:]
    with open(policy_file, encoding="utf-8") as file:
        policy = json.load(file)["policy"]

    @PADDING
    def padding(_session, kind, length, _argument):
        # The length holds the byte of the content type.
        return padded(policy, length - 1) - (length - 1) if kind == APPLICATION_DATA else 0

    context = ctypes.c_void_p(checked(ssl.SSL_CTX_new(ctypes.c_void_p(ssl.TLS_server_method()))))
    checked(ssl.SSL_CTX_ctrl(context, SET_MIN_PROTO_VERSION, ctypes.c_long(TLS_1_3), None))
    checked(ssl.SSL_CTX_use_certificate_file(context, certificate.encode(), PEM))
    checked(ssl.SSL_CTX_use_PrivateKey_file(context, key.encode(), PEM))
    ssl.SSL_CTX_set_record_padding_callback(context, padding)

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, int(port)))
    listener.listen()
    connection, _ = listener.accept()
    session = ctypes.c_void_p(checked(ssl.SSL_new(context)))
    checked(ssl.SSL_set_fd(session, connection.fileno()))
    checked(ssl.SSL_accept(session))
    buffer = ctypes.create_string_buffer(1 << 14)
    while True:
        ready, _, _ = select.select([0, connection], [], [])
        if 0 in ready:
            message = os.read(0, 1 << 14)
            if not message:
                return
            checked(ssl.SSL_write(session, message, len(message)))
        if connection in ready:
            length = ssl.SSL_read(session, buffer, len(buffer))
            if length <= 0:
                return
            os.write(1, buffer.raw[:length])


main()
