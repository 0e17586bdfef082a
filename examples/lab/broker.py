"""What labs over MQTT share: mosquitto with TLS, the gateway that is its client, and the cloud behind it."""
import contextlib
import getpass
import pathlib
import queue
import subprocess
import sys

import paho.mqtt.client as mqtt

import lab


class Cloud:
    """The service: a client of the broker that publishes commands, and takes what the gateway reports."""

    def __init__(self, port, topic):
        self.client = mqtt.Client()
        self.client.on_message = lambda _client, _data, message: self.reports.put(message)
        self.client.connect(lab.SERVER, port)
        self.client.subscribe(topic, qos=1)
        self.client.loop_start()

    def exchange(self, topic, payload, qos):
        """Publishes a command; returns the next report."""
        self.reports = queue.Queue()
        self.client.publish(topic, payload, qos)
        try:
            return self.reports.get(timeout=5)
        except queue.Empty:
            raise OSError("the gateway did not report within 5 s") from None


def start_broker(folder, port):
    """Mosquitto, with TLS for the gateway, and a plain port of the next number for the cloud."""
    (folder / "mosquitto.conf").write_text(
        f"user {getpass.getuser()}\nallow_anonymous true\n"
        f"listener {port} {lab.SERVER}\ncafile {folder}/ca.pem\ncertfile {folder}/server.pem\n"
        f"keyfile {folder}/server.key\nrequire_certificate true\n"
        f"listener {port + 1} {lab.SERVER}\n"
    )
    return lab.start(["mosquitto", "-c", folder / "mosquitto.conf"], folder, "mosquitto", port + 1)


def start_gateway(program, folder, port):
    log = (folder / "gateway.log").open("w")
    gateway = subprocess.Popen([sys.executable, program, folder, lab.SERVER, str(port)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=log, text=True)
    if gateway.stdout.readline() != "ready\n":
        gateway.kill()
        sys.exit(f"the gateway did not start: {folder}/gateway.log says why")
    return gateway


def run(folder, port, gateway, cloud):
    """Starts a broker and a gateway, a script beside this one, and sends the commands of stdin by the cloud that
    `cloud` makes of its port."""
    with contextlib.ExitStack() as stack:
        stack.callback(start_broker(folder, port).kill)
        stack.callback(start_gateway(pathlib.Path(__file__).with_name(gateway), folder, port).kill)
        lab.commands(folder, cloud(port + 1).send)
