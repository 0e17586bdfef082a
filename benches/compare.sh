#!/usr/bin/env bash
# Runs sizeleak and others over the same captures in turn, and prints the ratios of their medians.
#
#     benches/compare.sh [FOLDER]     FOLDER holds the captures, about 2.5 GB; by default target/compare
#
# With OLD=FOLDER it also runs the programs of another build, in turn with these, and prints the ratios of the times.
# ROUNDS=N sets the number of runs.
#
# Needs tcpdump and taskset; tshark, ssldump and GNU time where they are there. Nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-target/compare}
rounds=${ROUNDS:-5}
gateway=192.168.1.20
export LC_ALL=C
mkdir -p "$folder"

cargo build --quiet --release
cargo build --quiet --release --package sizeleak-support --example archive
bin=target/release
archive=$bin/examples/archive
sizeleak=$bin/sizeleak

pipeline() { # NAME STAGES…: a pipeline file of these stages
    local file=$folder/$1.toml stage
    shift
    : > "$file"
    for stage in "$@"; do
        printf '[[stage]]\nrun = "%s"\n' "$stage" >> "$file"
        [ "$stage" = flow-filter ] && printf 'gateway = ["%s"]\n' "$gateway" >> "$file"
    done
    return 0
}
pipeline sizes capture flow-filter record-sizer
pipeline commands capture flow-filter record-sizer command-segmenter

capture() { # NAME SHAPE BYTES [OPTIONS…]: a capture, made once
    local file=$folder/$1.pcap
    [ -f "$file" ] || $archive write "$2" "$3" "$file" "${@:4}" > "$folder/$1.packets"
    cat "$file" > /dev/null
}
capture A mtu 1000000000
capture B small 500000000
capture C records 500000000
# The same again a day later, for two files at once.
capture A2 mtu 1000000000 --seed 2 --begins 1767700000
for shape in mtu:A small:B records:C; do capture "${shape#*:}100" "${shape%:*}" 100000000; done

packets() { awk '{print $1}' "$folder/$1.packets"; }
bytes() { stat -c %s "$folder/$1.pcap"; }

# What is measured: a name, and a command.
names=() commands=()
measure() { names+=("$1") commands+=("$2"); }
run="$sizeleak run --quiet --format frames -o /dev/null"
old_run="${OLD:-}/sizeleak run --quiet --format frames -o /dev/null"
for c in A B C; do
    f=$folder/$c.pcap
    measure "read $c" "$archive read $f"
    measure "walk $c" "$archive walk $f"
    measure "cat $c" "cat $f | cat > /dev/null"
    measure "ours $c" "$run $folder/sizes.toml $f"
    measure "ours $c, one processor" "taskset -c 0 $run $folder/sizes.toml $f"
    if [ -n "${OLD:-}" ]; then
        measure "old $c" "$old_run $folder/sizes.toml $f"
        measure "old $c, one processor" "taskset -c 0 $old_run $folder/sizes.toml $f"
        measure "old four $c" "$old_run $folder/commands.toml $f"
        measure "old pipe $c" "$OLD/capture --quiet $f | $OLD/flow-filter --quiet --gateway $gateway | $OLD/record-sizer --quiet | $OLD/command-segmenter --quiet > /dev/null"
    fi
    measure "four $c" "$run $folder/commands.toml $f"
    measure "tcpdump $c" "tcpdump -r $f -w /dev/null host $gateway"
    stages="$bin/flow-filter --quiet --gateway $gateway | $bin/record-sizer --quiet | $bin/command-segmenter --quiet"
    measure "pipe $c" "$bin/capture --quiet $f | $stages > /dev/null"
    measure "pipe-only $c" "$bin/capture --quiet --only $gateway -- $f | $stages > /dev/null"
    measure "ours $c 100 MB" "$run $folder/sizes.toml $folder/${c}100.pcap"
    if command -v tshark > /dev/null; then
        measure "tshark $c 100 MB" "tshark -n -r ${f%.pcap}100.pcap -Y tls.record -T fields -e tls.record.length"
    fi
done
if command -v ssldump > /dev/null; then measure "ssldump C 100 MB" "ssldump -n -r $folder/C100.pcap"; fi
measure "size C" "taskset -c 0 $archive size $folder/C.pcap"
measure "two files" "$run $folder/sizes.toml $folder/A.pcap $folder/A2.pcap"

results=$folder/results
: > "$results"
for ((round = 0; round < rounds; round++)); do
    # What comes from the disk lies in memory page by page, and is read at half the speed of what was written just now.
    for file in "$folder"/*.pcap; do
        cp "$file" "$folder/copy"
        mv "$folder/copy" "$file"
    done
    for i in "${!names[@]}"; do
        # Systems take back memory that holds files.
        for file in "$folder"/*.pcap; do
            case "${commands[i]}" in *"$file"*) cat "$file" > /dev/null ;; esac
        done
        begin=$EPOCHREALTIME
        bash -c "${commands[i]}" > /dev/null 2>&1 || { echo "it fails: ${commands[i]}" >&2; exit 1; }
        end=$EPOCHREALTIME
        printf '%s\t%s\n' "${names[i]}" "$(awk "BEGIN { print $end - $begin }")" >> "$results"
    done
done
seconds() { awk -F'\t' -v name="$1" '$1 == name { print $2 }' "$results" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
has() { grep -q "^$1	" "$results"; }

printf '%-44s %8s %8s %8s\n' "" A B C
row() { # TITLE EXPRESSION: of each capture, with $c its letter
    printf '%-44s' "$1"
    for c in A B C; do printf ' %8s' "$(eval "$2")"; done
    printf '\n'
}
quotient() { awk "BEGIN { printf \"%.2f\", ($1) / ($2) }"; }
user_time() { # COMMAND: of a packet of the capture $c, in nanoseconds, over many runs: the system counts it in long steps
    TIMEFORMAT=%U
    { time for ((i = 0; i < 20; i++)); do $1 > /dev/null 2>&1; done; } 2>&1 | awk -v n="$(packets $c)" '{ printf "%.1f", $1 * 1e9 / 20 / n }'
}
row 'read() in 256 KiB blocks, GB/s' 'quotient "$(bytes $c) / 1e9" "$(seconds "read $c")"'
row 'records sized, GB/s' 'quotient "$(bytes $c) / 1e9" "$(seconds "ours $c")"'
row 'records sized, M packets/s' 'quotient "$(packets $c) / 1e6" "$(seconds "ours $c")"'
row 'share of the read limit' 'quotient "$(seconds "read $c")" "$(seconds "ours $c")"'
row 'on one processor, share of the read limit' 'quotient "$(seconds "read $c")" "$(seconds "ours $c, one processor")"'
if [ -n "${OLD:-}" ]; then
    row 'speed of the other build, as a share of ours' 'quotient "$(seconds "ours $c")" "$(seconds "old $c")"'
    row 'the same on one processor' 'quotient "$(seconds "ours $c, one processor")" "$(seconds "old $c, one processor")"'
    row 'the same in a Unix pipe of four stages' 'quotient "$(seconds "pipe $c")" "$(seconds "old pipe $c")"'
fi
row 'first four stages, times the time of three' 'quotient "$(seconds "four $c")" "$(seconds "ours $c")"'
if [ -n "${OLD:-}" ]; then
    row 'first four stages, times the time of the other build' 'quotient "$(seconds "four $c")" "$(seconds "old four $c")"'
fi
row 'two processors against one' 'quotient "$(seconds "ours $c, one processor")" "$(seconds "ours $c")"'
row 'first four stages, share of the read limit' 'quotient "$(seconds "read $c")" "$(seconds "four $c")"'
row 'times as fast as tcpdump -w /dev/null host G' 'quotient "$(seconds "tcpdump $c")" "$(seconds "ours $c")"'
if has 'tshark A 100 MB'; then
    row 'times as fast as tshark (100 MB)' 'quotient "$(seconds "tshark $c 100 MB")" "$(seconds "ours $c 100 MB")"'
fi
row 'Unix pipe of four stages, GB/s' 'quotient "$(bytes $c) / 1e9" "$(seconds "pipe $c")"'
row 'Unix pipe of four stages, M packets/s' 'quotient "$(packets $c) / 1e6" "$(seconds "pipe $c")"'
row 'pipe with --only, times the fused time' 'quotient "$(seconds "pipe-only $c")" "$(seconds "four $c")"'
if has 'ssldump C 100 MB'; then
    printf '%-44s %26s\n' 'times as fast as ssldump (100 MB)' "$(quotient "$(seconds 'ssldump C 100 MB')" "$(seconds 'ours C 100 MB')")"
fi
printf '%-44s %8s\n' 'two files, against one on one processor' "$(quotient "2 * $(seconds 'ours A, one processor')" "$(seconds 'two files')")"
row 'user time a packet, ns' 'user_time "$run $folder/sizes.toml $folder/$c.pcap"'
row 'the same on one processor' 'user_time "taskset -c 0 $run $folder/sizes.toml $folder/$c.pcap"'
row 'the least loop: share of the read limit' 'quotient "$(seconds "read $c")" "$(seconds "walk $c")"'
row 'the least loop: user time a packet, ns' 'user_time "$archive walk $folder/$c.pcap"'
c=C
printf '%-44s %26s\n' 'the least sizing: share of the read limit' "$(quotient "$(seconds 'read C')" "$(seconds 'size C')")"
printf '%-44s %26s\n' 'the least sizing: user time a packet, ns' "$(user_time "taskset -c 0 $archive size $folder/C.pcap")"
if [ -x /usr/bin/time ]; then
    peak() { /usr/bin/time -f %M bash -c "exec $1" 2>&1 | awk '{ printf "%.1f", $1 / 1024 }'; }
    row 'peak memory, MB' 'peak "$run $folder/sizes.toml $folder/$c.pcap"'
    row 'the same with the first four stages' 'peak "$run $folder/commands.toml $folder/$c.pcap"'
fi
