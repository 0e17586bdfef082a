#!/usr/bin/env python3
"""Sends commands over one HTTP connection that stays open: a program that is started once and gets a line for each.

    export URL=http://hub.local:8080/commands
    sizeleak record --inventory home.toml --do-lines examples/drivers/lines.py --interface eth1 \
        --gateway 192.168.1.20 -o recorded

It answers each line by `ok`, or by why the command was not sent. A library of a cloud service takes the place of
`send`."""
import http.client
import os
import sys
import urllib.parse

url = urllib.parse.urlsplit(os.environ["URL"])
kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
connection = kinds[url.scheme](url.netloc, timeout=30)


def send(command):
    """Sends a command, the JSON that was given, as one message."""
    connection.request("POST", url.path or "/", command, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    if response.status >= 400:
        raise OSError(f"status {response.status}")


for line in sys.stdin:
    try:
        send(line.strip())
        print("ok", flush=True)
    except (OSError, http.client.HTTPException) as error:
        connection.close()  # the next command opens it again
        print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
