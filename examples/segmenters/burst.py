"""A command is a burst of application data to the gateway, ended by a silence: python3 burst.py [SILENCE in ms]"""
import bisect, os, signal, sys, msgpack
NAME, SHORTEST = "burst-segmenter", 50  # bytes on the wire; shorter records are keep-alives or acknowledgements
SILENCE = round(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 40_000_000  # all times are in nanoseconds
REPLIES, LATE, LONGEST, MOST = 3_000_000_000, 3_000_000_000, 10_000_000_000, 10_000  # at most MOST commands wait
hello = {"schema": 1, "stage": NAME, "version": "1.0", "upstream": []}
own = {"stage": NAME, "frames_in": 0, "frames_out": 0, "bytes_in": 0, "told_early": 0, "latency": b"", "queue": b""}
waiting, last = [], {}  # commands that may still get replies, by start; the last of each flow

def write(kind, body):
    sys.stdout.buffer.write(msgpack.packb({kind: body}))

def emit_before(time):  # the commands that can get no more records or replies
    while waiting and (len(waiting) > MOST or waiting[0]["end_ns"] < time):
        command = waiting.pop(0)
        if last.get(command["flow"]) is command: del last[command["flow"]]
        own.update(frames_out=own["frames_out"] + 1, told_early=own["told_early"] + (command["end_ns"] >= time))
        write("command", command)

def take(record):
    flow, start, end, size, sizes = (record.get(key) for key in ("flow", "start_ns", "time_ns", "length", "plaintext"))
    own.update(frames_in=own["frames_in"] + 1, bytes_in=own["bytes_in"] + size)
    if record["content_type"] != 23 or record["handshake"] or size < SHORTEST: return
    known = last.get(flow)
    if record["direction"] == "from_gateway":
        if known and start - known["end_ns"] <= REPLIES: known["replies"] += 1; known["reply_bytes"] += size
    elif known and start - known["end_ns"] <= SILENCE and end - known["time_ns"] <= LONGEST:
        both = known["plaintext"] and sizes and [a + b for a, b in zip(known["plaintext"], sizes)]
        known.update(end_ns=end, size=known["size"] + size, plaintext=both, records=known["records"] + 1)
    else:
        last[flow] = {"time_ns": start, "end_ns": end, "flow": flow, "size": size, "plaintext": sizes,
                      "records": 1, "replies": 0, "reply_bytes": 0}
        bisect.insort(waiting, last[flow], key=lambda command: command["time_ns"])
    emit_before(end - REPLIES - LATE)  # records of another flow may be this late

def read(unpacker, before=None):  # returns the rows of the summary, or raises why there is none
    while chunk := os.read(0, 1 << 16):
        unpacker.feed(chunk)
        for ((kind, body),) in map(dict.items, unpacker):
            if (kind == "hello") != (before is None) or before == "summary": raise ValueError(f"misplaced {kind}")
            if kind == "hello" and body["schema"] > 1: raise ValueError(f"schema {body['schema']} is newer than 1")
            if kind == "hello": write(kind, {**hello, "upstream": body["upstream"] + [body["stage"]]}); hello.clear()
            elif kind == "record": take(body)
            elif kind != "summary": write(kind, body)
            before, rows = kind, body["stages"] if kind == "summary" else None
        sys.stdout.flush()  # before waiting for more
    if before != "summary": raise EOFError("the input ended without its summary")
    return rows

signal.signal(signal.SIGINT, lambda *_: signal.signal(signal.SIGINT, signal.SIG_DFL))  # the second one ends this stage
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # this stage ends quietly if its reader is gone
try: rows, code = read(msgpack.Unpacker(max_buffer_size=17 << 20, strict_map_key=False)), 0
except EOFError as error: why, code = str(error), 3
except Exception as error: why, code = f"the input is no stream of frames: {error!r}", 1
if hello: write("hello", hello)  # the input ended before its hello
emit_before(1 << 63)
if code == 0: sys.exit(write("summary", {"stages": rows + [own]}))
write("notice", {"stage": NAME, "what": "cut" if code == 3 else "failed", "detail": why})
print(f"{NAME}: {why}", file=sys.stderr)
sys.exit(code)
