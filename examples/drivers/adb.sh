#!/bin/sh
# Taps what a command asks for in the vendor's app on an Android phone that adb reaches.
#   sizeleak record --inventory home.toml --do examples/drivers/adb.sh --interface eth1 --gateway 192.168.1.20 -o recorded
# Needs adb and jq. TAPS is a file with a line for each device and action, `plug 0 on 540 1200`: the point to tap (see
# them with the phone's developer option "pointer location"). Keep the phone awake: adb shell svc power stayon true.
# Each tap is a message of its own: give such an app scenes, and name each scene as an action of one device.
set -e
jq --raw-output '.devices[] | "\(.device) \(.index) \(.action)"' | while read -r device; do
    point=$(grep "^$device " "${TAPS:?name the file of points}" | cut -d' ' -f4-5)
    [ -n "$point" ] || { echo "no point for $device" >&2; exit 1; }
    # shellcheck disable=SC2086
    adb shell input tap $point < /dev/null
done
