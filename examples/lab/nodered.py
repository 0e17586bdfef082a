#!/usr/bin/env python3
"""A home whose gateway is Node-RED, which takes the commands of SmartThings by HTTPS, on loopback.

    python3 nodered.py FOLDER       # a line of JSON for each command, as `sizeleak record --do-lines` gives it

It starts Node-RED, and is the cloud: it sends each command as a `commandRequest` with `devices[]`, over a connection
that stays open (`--connect-each`: over one of its own), and answers `ok`, or why not. All of it ends with stdin. The
gateway is 127.0.0.2:8883 (`--port`), the cloud 127.0.0.1. FOLDER gets sizes.json (the true bytes of each action) and
sent.ndjson (each command with the bytes of its body). Needs openssl and Node-RED
(`npm install --prefix DIR node-red@4`, `--node-red DIR/node_modules/.bin/node-red`)."""
import http.client
import json
import socket
import ssl
import uuid

import lab

# What each action commands: a capability, its command and arguments.
COMMANDS = {
    "on": ("st.switch", "on", []),
    "off": ("st.switch", "off", []),
    "toggle": ("st.switch", "toggle", []),
    "timer": ("st.timer", "setTimer", [1800]),
    "dim": ("st.switchLevel", "setLevel", [45]),
    "white": ("st.colorTemperature", "setColorTemperature", [2700]),
    "colour": ("st.colorControl", "setColor", [{"hue": 12.5, "saturation": 90}]),
}
# What the gateway does: it keeps what was commanded, and answers with the state of each device.
GATEWAY = """\
const devices = msg.payload.devices.map(device => {
    global.set(device.externalDeviceId, device.commands);
    const states = device.commands.map(({ component, capability, command }) =>
        ({ component, capability, attribute: "command", value: command }));
    return { externalDeviceId: device.externalDeviceId, states };
});
msg.payload = { headers: { ...msg.payload.headers, interactionType: "commandResponse" }, deviceState: devices };
return msg;
"""


def request(devices):
    """A request as the service sends it."""
    def told(each):
        capability, command, arguments = COMMANDS[each["action"]]
        command = {"component": "main", "capability": capability, "command": command, "arguments": arguments}
        return {"externalDeviceId": f"{each['device']}{each['index']}", "deviceCookie": {}, "commands": [command]}

    headers = {"schema": "st-schema", "version": "1.0", "interactionType": "commandRequest",
               "requestId": str(uuid.uuid4())}
    body = {"headers": headers, "authentication": {"tokenType": "Bearer", "token": "a" * 32},
            "devices": [told(each) for each in devices]}
    return json.dumps(body, separators=(",", ":"))


def start_gateway(folder, program, port):
    flow = [
        {"id": "home", "type": "tab", "label": "home"},
        {"id": "in", "z": "home", "type": "http in", "url": "/smartthings", "method": "post", "wires": [["set"]]},
        {"id": "set", "z": "home", "type": "function", "func": GATEWAY, "outputs": 1, "wires": [["out"]]},
        {"id": "out", "z": "home", "type": "http response", "wires": []},
    ]
    (folder / "flows.json").write_text(json.dumps(flow))
    (folder / "settings.js").write_text(
        'const read = name => require("fs").readFileSync(`${__dirname}/${name}`);\n'
        'module.exports = { flowFile: "flows.json", httpAdminRoot: false, credentialSecret: false,\n'
        f'    uiHost: "{lab.SERVER}", uiPort: {port},\n'
        '    https: { key: read("server.key"), cert: read("server.pem") } };\n'
    )
    return lab.start([program, "--userDir", folder, "--settings", folder / "settings.js"], folder, "node-red", port)


class Connection(http.client.HTTPConnection):
    """A connection to the gateway, by its name, as in `https://hub.example`, or by its address (no name)."""

    def __init__(self, folder, port, name):
        super().__init__(name or lab.SERVER, port, timeout=10)
        self.tls = ssl.create_default_context(cafile=folder / "ca.pem")

    def connect(self):
        self.sock = self.tls.wrap_socket(socket.create_connection((lab.SERVER, self.port), self.timeout),
                                         server_hostname=self.host)


class Cloud:
    """The service: a client of the gateway."""

    def __init__(self, connection, connect_each):
        self.connection = connection
        self.connect_each = connect_each

    def send(self, devices):
        body = request(devices)
        try:
            self.connection.request("POST", "/smartthings", body, {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise OSError(f"{type(error).__name__}: {error}") from None
        if response.status != 200 or len(json.loads(text)["deviceState"]) != len(devices):
            raise OSError(f"the gateway did not set all devices (status {response.status})")
        if self.connect_each:
            self.connection.close()
        return len(body)


def main():
    parser = lab.options(__doc__)
    parser.add_argument("--node-red", default="node-red", help="the program")
    parser.add_argument("--connect-each", action="store_true", help="a connection for each command")
    parser.add_argument("--no-name", action="store_true", help="the cloud knows the gateway by its address")
    options = parser.parse_args()
    folder = lab.begin(options.folder, lab.true_sizes(request, COMMANDS))
    gateway = start_gateway(folder, options.node_red, options.port)
    try:
        connection = Connection(folder, options.port, None if options.no_name else lab.NAME)
        lab.commands(folder, Cloud(connection, options.connect_each).send)
    finally:
        gateway.kill()


if __name__ == "__main__":
    main()
