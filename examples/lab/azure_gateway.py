"""The gateway of azure_hub.py: Azure's Python SDK for devices, which answers methods, and reports desired properties.

    python3 azure_gateway.py FOLDER HOST PORT     # FOLDER has ca.pem, client.pem and client.key"""
import pathlib
import sys

import paho.mqtt.client as mqtt
from azure.iot.device import IoTHubDeviceClient, MethodResponse, X509

folder, host, port = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
# The SDK connects to 8883 only.
connect = mqtt.Client.connect
mqtt.Client.connect = lambda client, **options: connect(client, **{**options, "port": port})
client = IoTHubDeviceClient.create_from_x509_certificate(
    X509(folder / "client.pem", folder / "client.key"), host, "hub",
    server_verification_cert=(folder / "ca.pem").read_text())
client.connect()


def called(request):
    client.send_method_response(MethodResponse.create_from_method_request(request, 200, {"set": len(request.payload)}))


def desired(properties):
    del properties["$version"]
    client.patch_twin_reported_properties(properties)


client.on_method_request_received = called
client.on_twin_desired_properties_patch_received = desired
print("ready", flush=True)
sys.stdin.read()  # until azure_hub.py ends
