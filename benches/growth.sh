#!/usr/bin/env bash
# Prints what sizing takes as captures grow from 10 MB to 10 GB, and from one connection to a million: user and system
# time, so that nothing else that runs meanwhile counts, and peak memory. Draws it too.
#
#     benches/growth.sh [FOLDER]     FOLDER gets one capture at a time, 10 GB at most, the results and growth.svg; by
#                                    default target/growth
#
# Needs GNU time.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-target/growth}
mkdir -p "$folder"
trap 'rm -f "$folder/capture.pcap"' EXIT
cargo build --quiet --release
cargo build --quiet --release --package sizeleak-support --examples
printf '[[stage]]\nrun = "%s"\n' capture flow-filter record-sizer > "$folder/sizes.toml"

results=$folder/results
printf 'series\tamount\tpackets\tseconds\tmegabytes\n' > "$results"

once() { # prints user and system time in seconds, and peak memory in KiB
    TIMEFORMAT='%3U %3S'
    { time /usr/bin/time -f %M target/release/sizeleak run "$folder/sizes.toml" "$folder/capture.pcap" \
        --gateway 192.168.1.20 --quiet --format frames -o /dev/null; } 2>&1 | tac | paste -sd ' '
}

line() { # SERIES AMOUNT TITLE SHAPE BYTES FLOWS [AT-ONCE]
    local packets
    packets=$(target/release/examples/archive write "$4" "$5" "$folder/capture.pcap" --flows "$6" --at-once "${7:-$6}" | cut -d' ' -f1)
    cat "$folder/capture.pcap" > /dev/null
    for _ in 1 2 3; do once; done | sort -n | sed -n 2p |
        awk -v series="$1" -v amount="$2" -v title="$3" -v bytes="$5" -v packets="$packets" -v results="$results" '{
            seconds = $1 + $2; megabytes = $3 / 1024
            printf "%s\t%s\t%s\t%.3f\t%.0f\n", series, amount, packets, seconds, megabytes >> results
            printf "| %s | %d | %.3f s | %.2f GB/s | %.0f ns | %.0f MB |\n",
                title, packets, seconds, bytes / 1e9 / seconds, seconds * 1e9 / packets, megabytes }'
}
echo '| capture | packets | user and system time | | a packet | peak memory |'
echo '|---|---|---|---|---|---|'
line bytes 10000000 'A, 10 MB' mtu 10000000 256
line bytes 100000000 'A, 100 MB' mtu 100000000 256
line bytes 1000000000 'A, 1 GB' mtu 1000000000 256
line bytes 10000000000 'A, 10 GB' mtu 10000000000 256
for flows in 1 100 10000 100000 1000000; do
    line connections "$flows" "C, 1 GB, $flows connections, 100 at once" records 1000000000 "$flows" "$((flows < 100 ? flows : 100))"
done
for flows in 1000 10000 50000 100000 1000000; do
    line at-once "$flows" "C, 1 GB, $flows at once" records 1000000000 "$flows"
done
target/release/examples/growth "$results" "$folder/growth.svg"
