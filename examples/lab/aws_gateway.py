"""The gateway of aws.py: AWS's Python SDK for devices, which sets what a shadow's delta asks for and reports it.

    python3 aws_gateway.py FOLDER HOST PORT     # FOLDER has ca.pem, client.pem and client.key"""
import json
import pathlib
import sys

from AWSIoTPythonSDK.MQTTLib import AWSIoTMQTTShadowClient

folder, host, port = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
client = AWSIoTMQTTShadowClient("hub")
client.configureEndpoint(host, port)
client.configureCredentials(*(str(folder / name) for name in ("ca.pem", "client.key", "client.pem")))
client.connect()
shadow = client.createShadowHandlerWithName("hub", isPersistentSubscribe=True)


def wanted(payload, _status, _token):
    report = {"state": {"reported": json.loads(payload)["state"]}}
    shadow.shadowUpdate(json.dumps(report), lambda *_: None, 5)


shadow.shadowRegisterDeltaCallback(wanted)
print("ready", flush=True)
sys.stdin.read()  # until aws.py ends
