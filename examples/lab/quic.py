#!/usr/bin/env python3
"""QUIC as aioquic speaks it, on loopback, with the bytes of frames in every packet that it sent.

    python3 quic.py FOLDER --messages 1000

A client (127.0.0.1) and a server (127.0.0.2:8883, `--port`) exchange messages of random sizes over connections of
many kinds: versions 1 and 2, connection ids of 0 to 20 bytes, each cipher suite, Retry, 0-RTT, key updates, a new
connection id, a changed port of the client, streams and datagrams, HTTP/3. FOLDER gets capture.pcap and
sent.ndjson: a row for each packet, in the order in which it was encrypted, with the `plaintext` that aioquic gave
to its cipher. Needs tcpdump, openssl and `pip install aioquic`."""
import asyncio
import random

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import QuicServer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived, ProtocolNegotiated, StreamDataReceived
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.quic.packet_builder import QuicPacketBuilder
from aioquic.tls import CipherSuite

import lab

V1, V2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2
# Each kind of connection: what differs from version 1 with connection ids of 8 bytes.
KINDS = {
    "v1": {},
    "v2": {"versions": [V2]},
    "upgrade": {"versions": [V2, V1], "original": V1},
    "client-id-0": {"client_id": 0},
    "server-id-4": {"client_id": 0, "server_id": 4},
    "id-20": {"client_id": 20, "server_id": 20},
    "id-1-18": {"client_id": 18, "server_id": 1},
    "aes-256": {"suite": CipherSuite.AES_256_GCM_SHA384},
    "chacha": {"suite": CipherSuite.CHACHA20_POLY1305_SHA256, "versions": [V2]},
    "retry": {"retry": True},
    "0-rtt": {"early": True},
    "key-update": {"during": "key"},
    "new-id": {"during": "id"},
    "new-id-20-0": {"during": "id", "client_id": 0, "server_id": 20},
    "rebinding": {"during": "port"},
    "rebinding-new-id": {"during": "port and id", "client_id": 5, "server_id": 12},
    "datagrams": {"datagrams": True, "size": 1440},
    "http3": {"http3": True, "size": 1400},
    "at-once": {"at_once": 8},
}


class Log:
    """A row for each packet that aioquic encrypts, with the datagram that it left in."""

    def __init__(self, sent):
        self.sent, self.waiting, self.kind = sent, [], ""
        encrypt, end = CryptoPair.encrypt_packet, QuicPacketBuilder._end_packet
        outgoing, transmit = QuicConnection.datagrams_to_send, QuicConnectionProtocol.transmit
        names = {CipherSuite.AES_128_GCM_SHA256: "AES_128_GCM", CipherSuite.AES_256_GCM_SHA384: "AES_256_GCM",
                 CipherSuite.CHACHA20_POLY1305_SHA256: "CHACHA20_POLY1305"}

        def ending(builder):
            builder._packet_crypto.builder = builder
            end(builder)

        def encrypting(pair, header, payload, number):
            protected = encrypt(pair, header, payload, number)
            self.waiting.append({
                "time_ns": lab.now(), "direction": "from_gateway" if pair.builder._is_client else "to_gateway",
                "kind": pair.builder._packet_type.name.lower(), "plaintext": len(payload), "packet": len(protected),
                "number": number, "version": pair.builder._version, "connection_id": len(pair.builder._peer_cid),
                "cipher": names[pair.send.cipher_suite], "key_phase": pair.send.key_phase})
            return protected

        def sending(connection, now):
            datagrams, place = outgoing(connection, now), 0
            for data, address in datagrams:
                offset = 0
                while place < len(self.waiting) and offset + self.waiting[place]["packet"] <= len(data):
                    row = self.waiting[place]
                    row |= {"datagram": len(data), "offset": offset, "peer_port": address[1]}
                    offset += row["packet"]
                    place += 1
            assert place == len(self.waiting), "a packet left in no datagram"
            return datagrams

        def transmitting(protocol):
            transmit(protocol)
            for row in self.waiting:
                port, peer = protocol._transport.get_extra_info("sockname")[1], row.pop("peer_port")
                row["client_port"] = port if row["direction"] == "from_gateway" else peer
                self.sent.write(row | {"connection": self.kind})
            self.waiting.clear()

        QuicPacketBuilder._end_packet, CryptoPair.encrypt_packet = ending, encrypting
        QuicConnection.datagrams_to_send, QuicConnectionProtocol.transmit = sending, transmitting


class Server(QuicConnectionProtocol):
    """Answers a message with as many bytes as its first two bytes say."""

    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.requests, self.http = {}, None

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol in H3_ALPN:
            self.http = H3Connection(self._quic)
        if isinstance(event, DatagramFrameReceived):
            self._quic.send_datagram_frame(event.data)
        elif self.http:
            for told in self.http.handle_event(event):
                self.gather(told.stream_id, getattr(told, "data", b""), told.stream_ended, self.respond)
        elif isinstance(event, StreamDataReceived):
            self.gather(event.stream_id, event.data, event.end_stream, self.answer)

    def gather(self, stream, data, ended, then):
        self.requests[stream] = self.requests.get(stream, b"") + data
        if ended:
            then(stream, bytes(int.from_bytes(self.requests.pop(stream)[:2], "big")))

    def answer(self, stream, data):
        self._quic.send_stream_data(stream, data, end_stream=True)

    def respond(self, stream, data):
        self.http.send_headers(stream, [(b":status", b"200"), (b"content-length", str(len(data)).encode())])
        self.http.send_data(stream, data, end_stream=True)


class Client(QuicConnectionProtocol):
    """Sends messages, and waits for their answers."""

    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.http, self.ended, self.datagram = None, {}, None

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            for waits in self.ended.values():
                waits.set_exception(ConnectionError(f"the connection ended: {event.reason_phrase}"))
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol in H3_ALPN:
            self.http = H3Connection(self._quic)
        if isinstance(event, DatagramFrameReceived) and self.datagram and not self.datagram.done():
            self.datagram.set_result(None)
        if self.http:
            for told in self.http.handle_event(event):
                if told.stream_ended:
                    self.ended.pop(told.stream_id).set_result(None)
        elif isinstance(event, StreamDataReceived) and event.end_stream:
            self.ended.pop(event.stream_id).set_result(None)

    async def ask(self, message):
        stream = self._quic.get_next_available_stream_id()
        self.ended[stream] = answered = self._loop.create_future()
        if self.http:
            self.http.send_headers(stream, [(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/command"),
                                            (b":authority", lab.NAME.encode())])
            self.http.send_data(stream, message, end_stream=True)
        else:
            self._quic.send_stream_data(stream, message, end_stream=True)
        self.transmit()
        await answered

    async def tell(self, message):
        self.datagram = self._loop.create_future()
        self._quic.send_datagram_frame(message)
        self.transmit()
        try:
            await asyncio.wait_for(self.datagram, 0.2)
        except asyncio.TimeoutError:
            pass

    async def change(self, what):
        """What a network or a long connection does: another port of the client, connection id, or keys."""
        if "port" in what:
            self._transport.close()
            await self._loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        if "id" in what:
            self.change_connection_id()
        if "key" in what:
            self.request_key_update()


def message(chance):
    """Mostly the size of a command, sometimes of a picture; the answer's size stands in front."""
    size, answer = (chance.randrange(2, 400) if chance.random() < 0.9 else chance.randrange(400, 4000) for _ in "12")
    return answer.to_bytes(2, "big") + bytes(size - 2)


def configuration(kind, folder, side):
    made = QuicConfiguration(
        is_client=side == "client", alpn_protocols=H3_ALPN if kind.get("http3") else ["command"],
        connection_id_length=kind.get(f"{side}_id", 8), supported_versions=kind.get("versions", [V1]),
        original_version=kind.get("original") if side == "client" else None, max_datagram_size=kind.get("size", 1200),
        cipher_suites=[kind["suite"]] if "suite" in kind else None, server_name=lab.NAME,
        max_datagram_frame_size=65536 if kind.get("datagrams") else None)
    if side == "client":
        made.load_verify_locations(folder / "ca.pem")
    else:
        made.load_cert_chain(folder / "server.pem", folder / "server.key")
    return made


async def serve(kind, folder, port, tickets):
    loop = asyncio.get_running_loop()
    _, server = await loop.create_datagram_endpoint(
        lambda: QuicServer(configuration=configuration(kind, folder, "server"), create_protocol=Server,
                           retry=kind.get("retry", False), session_ticket_fetcher=tickets.pop,
                           session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket})),
        local_addr=(lab.SERVER, port))
    return server


async def connect(kind, folder, port, tickets, ticket):
    """A client's connection; with a ticket, its first message leaves before the handshake ends."""
    made = configuration(kind, folder, "client")
    made.session_ticket = ticket
    loop = asyncio.get_running_loop()
    connection = QuicConnection(configuration=made, session_ticket_handler=tickets.append)
    if made.connection_id_length == 0:
        # aioquic would offer more of them, which RFC 9000 (section 19.15) does not allow.
        connection._replenish_connection_ids = lambda: None
    _, client = await loop.create_datagram_endpoint(lambda: Client(connection), local_addr=("127.0.0.1", 0))
    client.connect((lab.SERVER, port), transmit=ticket is None)
    if ticket is None:
        await client.wait_connected()
    return client


async def converse(kind, folder, port, count, chance):
    stored, got = {}, []
    server = await serve(kind, folder, port, stored)
    if kind.get("early"):
        first = await connect(kind, folder, port, got, None)
        await first.ask(message(chance))
        first.close()
        await first.wait_closed()
    client = await connect(kind, folder, port, got, got[-1] if kind.get("early") else None)
    together = kind.get("at_once", 1)
    for number in range(0, count, together):
        if "during" in kind and number % max(count // 4, 1) == count // 8:
            await client.change(kind["during"])
        if kind.get("datagrams"):
            await client.tell(message(chance)[:1100])
        else:
            await asyncio.gather(*(client.ask(message(chance)) for _ in range(together)))
    client.close()
    await client.wait_closed()
    server.close()


def main():
    parser = lab.options(__doc__)
    parser.add_argument("--messages", type=int, default=1000, help="for all connections together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    folder = lab.begin(options.folder)
    chance = random.Random(options.seed)
    with lab.Sent(folder) as sent, lab.capture(folder, f"udp and host {lab.SERVER} and port {options.port}"):
        log = Log(sent)
        for name in options.kinds:
            log.kind = name
            count = max(options.messages // len(options.kinds), 8)
            asyncio.run(asyncio.wait_for(converse(KINDS[name], folder, options.port, count, chance), 300))


if __name__ == "__main__":
    main()
