#!/usr/bin/env python3
"""DTLS 1.2 with connection ids, and DTLS 1.3, as wolfSSL speaks them, on loopback.

    python3 dtls.py FOLDER --wolfssl DIR --version 1.3 --messages 1000

A client (the gateway, 127.0.0.1) and a server (127.0.0.2:8883, `--port`) exchange messages of random sizes, over a
connection for each cipher suite and pair of connection ids (0 to 8 bytes, different in each direction, or none).
FOLDER gets capture.pcap and sent.ndjson: a row for each record that is encrypted, with its content type as `kind`,
its content as `plaintext`, and what wolfSSL adds to it (`inner`, with the content type and `padding`). Needs
tcpdump, openssl, cc, and wolfSSL's source: the folder `wolfssl-src` of the crate wolfssl-sys, which `cargo fetch`
unpacks."""
import fcntl
import json
import os
import pathlib
import subprocess

import lab

# Each connection: its suite, and the connection ids that client and server want in what they get.
KINDS = {
    "1.2": [
        ("ECDHE-RSA-AES128-GCM-SHA256", "4", "8"),
        ("ECDHE-RSA-AES256-GCM-SHA384", "1", "4"),
        ("ECDHE-RSA-CHACHA20-POLY1305", "8", "1"),
        ("PSK-AES128-CCM-8", "2", "6"),
        ("PSK-AES128-CCM", "0", "8"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "8", "0"),
        ("ECDHE-RSA-CHACHA20-POLY1305", "-", "-"),
    ],
    "1.3": [
        ("TLS13-AES128-GCM-SHA256", "-", "-"),
        ("TLS13-AES256-GCM-SHA384", "4", "8"),
        ("TLS13-CHACHA20-POLY1305-SHA256", "1", "4"),
        ("TLS13-AES128-CCM-SHA256", "0", "8"),
        ("TLS13-AES128-CCM-8-SHA256", "8", "1"),
        ("TLS13-AES128-CCM-8-SHA256", "-", "-"),
    ],
}
# What of wolfSSL is built.
SETTINGS = """
WOLFSSL_DTLS WOLFSSL_DTLS_MTU WOLFSSL_DTLS13 WOLFSSL_DTLS_CID WOLFSSL_DTLS_CH_FRAG WOLFSSL_SEND_HRR_COOKIE
WOLFSSL_TLS13 HAVE_TLS_EXTENSIONS HAVE_SUPPORTED_CURVES HAVE_EXTENDED_MASTER HAVE_HKDF HAVE_ECC HAVE_CURVE25519
ECC_TIMING_RESISTANT WC_RSA_BLINDING WC_RSA_PSS HAVE_AESGCM HAVE_AESCCM WOLFSSL_AES_COUNTER WOLFSSL_AES_DIRECT
HAVE_CHACHA HAVE_POLY1305 HAVE_ONE_TIME_AUTH WOLFSSL_SHA384 WOLFSSL_SHA512 WOLFSSL_SP_MATH_ALL WOLFSSL_STATIC_PSK
HAVE_FFDHE_2048 NO_DES3 NO_RC4 NO_MD4 NO_OLD_TLS NO_DSA DTLS_CID_MAX_SIZE=8
"""
# The calls that give a cipher what it encrypts.
WRAPPED = ["wc_AesGcmEncrypt", "wc_AesGcmEncrypt_ex", "wc_AesCcmEncrypt", "wc_AesCcmEncrypt_ex", "wc_Chacha_Process",
           "wc_Poly1305_MAC"]


def build(wolfssl, folder):
    """Builds dtls.c and the parts of wolfSSL that it needs; what is built stays in `folder`."""
    program = folder / "dtls"
    source = pathlib.Path(__file__).with_name("dtls.c")
    folder.mkdir(parents=True, exist_ok=True)
    # Another lab may build it now.
    fcntl.flock(os.open(folder / "lock", os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    settings = (f"#define {setting.replace('=', ' ')}\n" for setting in SETTINGS.split())
    (folder / "user_settings.h").write_text("".join(settings))
    flags = ["cc", "-O1", "-w", "-DWOLFSSL_USER_SETTINGS", "-I", folder, "-I", wolfssl]
    parts = [*wolfssl.glob("wolfcrypt/src/*.c"), *(wolfssl / f"src/{name}.c" for name in
             ["internal", "tls", "tls13", "ssl", "keys", "wolfio", "dtls", "dtls13"])]
    # These are included by others.
    parts = [part for part in parts if part.stem not in ("misc", "evp")]
    objects = [folder / f"{part.stem}.o" for part in parts]
    # Two at a time.
    compiling = []
    for part, made in zip(parts, objects):
        compiling.append(subprocess.Popen([*flags, "-c", part, "-o", made]))
        if len(compiling) == 2:
            assert compiling.pop(0).wait() == 0, f"{part} does not compile"
    assert all(each.wait() == 0 for each in compiling), "wolfSSL does not compile"
    wraps = [f"-Wl,--wrap={name}" for name in WRAPPED]
    subprocess.run([*flags, source, *objects, *wraps, "-lm", "-o", program], check=True)
    return program


def converse(program, folder, port, version, messages, seed, sent):
    """One connection of each kind; their rows go to `sent`."""
    for number, (suite, client, server) in enumerate(KINDS[version]):
        own = port + 1 + (seed + number) % 1000
        count = max(messages // len(KINDS[version]), 4)
        words = [program, folder, port, version, suite, client, server, count, seed + number]
        told = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True, timeout=120)
        for line in told.stdout.splitlines():
            sent.write({**json.loads(line), "client_port": own})


def main():
    parser = lab.options(__doc__)
    parser.add_argument("--wolfssl", type=pathlib.Path, required=True, help="wolfSSL's source")
    parser.add_argument("--built", type=pathlib.Path, help="where what is built stays (FOLDER/built)")
    parser.add_argument("--version", choices=list(KINDS), required=True)
    parser.add_argument("--messages", type=int, default=1000, help="for all connections together")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = lab.begin(options.folder)
    program = build(options.wolfssl.resolve(), (options.built or folder / "built").resolve())
    with lab.Sent(folder) as sent, lab.capture(folder, f"udp and host {lab.SERVER} and port {options.port}"):
        converse(program, folder, options.port, options.version, options.messages, options.seed, sent)


if __name__ == "__main__":
    main()
