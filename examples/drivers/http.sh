#!/bin/sh
# Sends a command as one HTTP request: the JSON that `sizeleak record` gives, as it is, to URL.
#   export URL=http://hub.local:8080/commands
#   sizeleak record --inventory home.toml --do examples/drivers/http.sh --interface eth1 --gateway 192.168.1.20 -o recorded
# Needs curl. A status of 400 and more ends it with another code than 0, so that the command does not count. To change
# the JSON for an API, put `jq` before curl: jq '{lights: [.devices[] | {id: .index, state: .action}]}' | curl …
exec curl --silent --show-error --fail --max-time 30 --header 'Content-Type: application/json' --data-binary @- \
    --output /dev/null "${URL:?name the address to send to}"
