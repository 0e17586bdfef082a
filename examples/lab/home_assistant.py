#!/usr/bin/env python3
"""A home whose gateway is Home Assistant, which takes the commands of Google's assistant by HTTPS, on loopback.

    python3 home_assistant.py FOLDER       # a line of JSON for each command, as `sizeleak record --do-lines` gives it

It starts Home Assistant, and is the cloud: it sends each command as an `EXECUTE` with an entry for each device
(`--grouped`: for each action, with its devices), over HTTP/1.1 (`--http2`: over HTTP/2, by nginx in front), and
answers `ok`, or why not. All of it ends with stdin. The gateway is 127.0.0.2:8883 (`--port`), the cloud 127.0.0.1.
FOLDER gets sizes.json (the true bytes of each action, unless grouped: they have no such sizes) and sent.ndjson (each
command with the bytes of its body). Needs openssl, nginx for HTTP/2, and a python3 of its own with homeassistant
and h2 (`python3 -m venv DIR`, `DIR/bin/pip install homeassistant 'josepy<2' h2`)."""
import contextlib
import getpass
import json
import shutil
import ssl
import sys
import time

import httpx

import lab

# What each action executes: a command and its parameters.
EXECUTES = {
    "on": ("OnOff", {"on": True}),
    "off": ("OnOff", {"on": False}),
    "dim": ("BrightnessAbsolute", {"brightness": 45}),
    "white": ("ColorAbsolute", {"color": {"temperature": 2700}}),
    "colour": ("ColorAbsolute", {"color": {"name": "orange", "spectrumRGB": 16744448}}),
}
# What a lamp of the gateway can do. Its brightness must be known to be reported.
LAMP = {"turn_on": [], "turn_off": [], "set_level": [], "level_template": "{{ 128 }}", "set_temperature": [],
        "set_hs": []}
PROXY = """\
user {user}; daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr; events {{}}
http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
        uwsgi_temp_path {folder}; scgi_temp_path {folder}; server {{ listen {server}:{port} ssl http2;
        ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
        location / {{ proxy_pass http://{server}:{behind}; }} }} }}
"""


def request(devices, grouped):
    """A request as the service sends it."""
    entries = {}
    for number, each in enumerate(devices):
        entries.setdefault(each["action"] if grouped else number, []).append(each)
    commands = []
    for entry in entries.values():
        command, parameters = EXECUTES[entry[0]["action"]]
        commands.append({"devices": [{"id": f"light.{each['device']}{each['index']}"} for each in entry],
                         "execution": [{"command": f"action.devices.commands.{command}", "params": parameters}]})
    body = {"requestId": "1" * 20, "inputs": [{"intent": "action.devices.EXECUTE", "payload": {"commands": commands}}]}
    return json.dumps(body, separators=(",", ":"))


def start_gateway(folder, port, http2):
    """Home Assistant, as it is on its first day, and what stands before it; returns the processes."""
    home = folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    tls = {} if http2 else {"ssl_certificate": f"{folder}/server.pem", "ssl_key": f"{folder}/server.key"}
    lamps = {f"{kind}{index}": LAMP for kind in ("plug", "lamp") for index in range(6)}
    (home / "configuration.yaml").write_text(json.dumps({
        "http": {"server_host": lab.SERVER, "server_port": port + http2, **tls}, "api": {}, "onboarding": {},
        "google_assistant": {"project_id": "home"}, "light": [{"platform": "template", "lights": lamps}],
    }))
    servers = [lab.start([sys.executable, "-m", "homeassistant", "-c", home], folder, "homeassistant", port + http2)]
    if http2:
        (folder / "nginx.conf").write_text(
            PROXY.format(user=getpass.getuser(), folder=folder, server=lab.SERVER, port=port, behind=port + 1))
        servers.append(lab.start(["nginx", "-c", folder / "nginx.conf"], folder, "nginx", port))
    return servers


class Cloud:
    """The service: a client of the gateway that its user has signed in."""

    def __init__(self, folder, port, http2, grouped):
        self.grouped = grouped
        self.client = httpx.Client(
            base_url=f"https://{lab.SERVER}:{port}", verify=ssl.create_default_context(cafile=folder / "ca.pem"),
            http2=http2, limits=httpx.Limits(keepalive_expiry=None), timeout=10, trust_env=False)
        cloud = "https://cloud.example/"
        user = {"name": "user", "username": "user", "password": "user", "client_id": cloud, "language": "en"}
        code = self.ask("POST", "/api/onboarding/users", json=user)["auth_code"]
        grant = {"grant_type": "authorization_code", "code": code, "client_id": cloud}
        self.client.headers["Authorization"] = "Bearer " + self.ask("POST", "/auth/token", data=grant)["access_token"]
        # The server answers before all of the home is there.
        while self.ask("GET", "/api/config")["state"] != "RUNNING":
            time.sleep(0.1)

    def ask(self, method, path, **body):
        try:
            response = self.client.request(method, path, extensions={"sni_hostname": lab.NAME}, **body)
            response.raise_for_status()
            return response.json()
        except httpx.HTTPError as error:
            raise OSError(f"{type(error).__name__}: {error}") from None

    def send(self, devices):
        body = request(devices, self.grouped)
        answer = self.ask("POST", "/api/google_assistant", content=body, headers={"Content-Type": "application/json"})
        if {each["status"] for each in answer["payload"].get("commands", [])} != {"SUCCESS"}:
            raise OSError(f"the gateway did not set all devices: {answer['payload']}")
        return len(body)


def main():
    parser = lab.options(__doc__)
    parser.add_argument("--grouped", action="store_true", help="devices with the same action share an entry")
    parser.add_argument("--http2", action="store_true", help="HTTP/2, by nginx")
    options = parser.parse_args()
    sizes = {} if options.grouped else lab.true_sizes(lambda devices: request(devices, False), EXECUTES)
    folder = lab.begin(options.folder, sizes)
    with contextlib.ExitStack() as stack:
        for server in start_gateway(folder, options.port, options.http2):
            stack.callback(server.kill)
        lab.commands(folder, Cloud(folder, options.port, options.http2, options.grouped).send)


if __name__ == "__main__":
    main()
