#!/bin/sh
# Sends a command through the REST API of Home Assistant: one call for each action, with all devices that do it.
#   export NAME=plug URL=http://homeassistant.local:8123 TOKEN=… (a long-lived access token of your profile)
#   sizeleak record --inventory home.toml --do examples/drivers/home-assistant.sh --interface eth1 \
#     --gateway 192.168.1.20 -o recorded
# Needs curl and jq. In the inventory, call devices by their domain (`switch`, `light`); the entities have a common name
# (NAME=plug for switch.plug_0, switch.plug_1…); actions are services (`turn_on`, `toggle`). A command with several
# actions is several calls, and so several messages: keep to inventories of one action at a time if that is so.
set -e
calls=$(jq --compact-output '.devices | group_by([.device, .action])[] |
    {path: "\(.[0].device)/\(.[0].action)", entities: [.[] | "\(.device).\(env.NAME)_\(.index)"]}')
echo "$calls" | while read -r call; do
    echo "$call" | jq '{entity_id: .entities}' |
        curl --silent --show-error --fail --max-time 30 --header "Authorization: Bearer ${TOKEN:?}" \
            --header 'Content-Type: application/json' --data-binary @- --output /dev/null \
            "${URL:?}/api/services/$(echo "$call" | jq --raw-output .path)"
done
