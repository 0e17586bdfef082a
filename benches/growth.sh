#!/usr/bin/env bash
# Prints what sizing takes as captures grow from 10 MB to 10 GB, and from one connection to a million: user and system
# time, so that nothing else that runs meanwhile counts, and peak memory.
#
#     benches/growth.sh [FOLDER]     FOLDER gets one capture at a time, 10 GB at most; by default target/growth
#
# Needs GNU time.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-target/growth}
mkdir -p "$folder"
trap 'rm -f "$folder/capture.pcap"' EXIT
cargo build --quiet --release
cargo build --quiet --release --example archive
printf '[[stage]]\nrun = "%s"\n' capture flow-filter record-sizer > "$folder/sizes.toml"

line() { # TITLE SHAPE BYTES FLOWS [AT-ONCE]
    local packets
    packets=$(target/release/examples/archive write "$2" "$3" "$folder/capture.pcap" --flows "$4" --at-once "${5:-$4}" | cut -d' ' -f1)
    cat "$folder/capture.pcap" > /dev/null
    for _ in 1 2 3; do
        /usr/bin/time -f '%U %S %M' target/release/sizeleak run "$folder/sizes.toml" --input "$folder/capture.pcap" \
            --gateway 192.168.1.20 --quiet --format frames -o /dev/null 2>&1
    done | sort -n | sed -n 2p | awk -v title="$1" -v packets="$packets" -v bytes="$3" '{
        printf "| %s | %d | %.2f s | %.2f GB/s | %.0f ns | %.0f MB |\n",
            title, packets, $1 + $2, bytes / 1e9 / ($1 + $2), ($1 + $2) * 1e9 / packets, $3 / 1024 }'
}
echo '| capture | packets | user and system time | | a packet | peak memory |'
echo '|---|---|---|---|---|---|'
line 'A, 10 MB' mtu 10000000 256
line 'A, 100 MB' mtu 100000000 256
line 'A, 1 GB' mtu 1000000000 256
line 'A, 10 GB' mtu 10000000000 256
for flows in 1 100 10000 100000 1000000; do
    line "C, 1 GB, $flows connections, 100 at once" records 1000000000 "$flows" "$((flows < 100 ? flows : 100))"
done
for flows in 1000 10000 50000 100000 1000000; do line "C, 1 GB, $flows at once" records 1000000000 "$flows"; done
