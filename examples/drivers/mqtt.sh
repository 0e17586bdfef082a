#!/bin/sh
# Publishes a command by MQTT, all of its devices in one message, with mosquitto_pub.
#   export BROKER=cloud.example TOPIC=hub/20/set
#   sizeleak record --inventory home.toml --do examples/drivers/mqtt.sh --interface eth1 --gateway 192.168.1.20 -o recorded
# Needs mosquitto-clients and jq. Options for TLS and passwords go into OPTIONS: --cafile ca.pem -u user -P password.
# The gateway must get the message from the cloud's broker, not from one in the home.
jq --compact-output '{actions: [.devices[] | {id: "\(.device)-\(.index)", set: .action}]}' |
    # shellcheck disable=SC2086
    mosquitto_pub ${OPTIONS:-} -h "${BROKER:?name the broker}" -t "${TOPIC:?name the topic}" -q 1 -s
