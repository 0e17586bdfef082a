#!/bin/sh
# Calls a shell function for each action: for anything that a command line can do.
#   export SEND='hubctl set'
#   sizeleak record --inventory home.toml --do examples/drivers/function.sh --interface eth1 --gateway 192.168.1.20 -o recorded
# Needs jq. As it stands, the function runs SEND with device, index and action: `hubctl set plug 0 on`; write it anew for
# other gateways. If it fails, the script ends, and the command does not count.
set -e

act() { # device, index, action
    # shellcheck disable=SC2086
    ${SEND:?name the program that sends} "$1" "$2" "$3" < /dev/null
}

jq --raw-output '.devices[] | "\(.device) \(.index) \(.action)"' | while read -r device index action; do
    act "$device" "$index" "$action"
done
