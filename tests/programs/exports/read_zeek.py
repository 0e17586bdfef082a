"""Reads a log as Zeek's readers do, by its header alone. Prints its rows, and whether it was closed."""

import codecs, json, re, sys

def unescaped(text):
    return re.sub(rb"\\(\\|x[0-9a-f]{2})", lambda found: bytes([int(found[1][1:], 16)]) if found[1] != b"\\" else b"\\", text)

lines = open(sys.argv[1], "rb").read().split(b"\n")
assert lines.pop() == b""
separator = codecs.escape_decode(lines.pop(0).split(b" ", 1)[1])[0]
header = {}
while lines and lines[0].startswith(b"#") and not lines[0].startswith(b"#close"):
    name, *values = lines.pop(0)[1:].split(separator)
    header[name.decode()] = values
is_closed = bool(lines) and lines[-1].startswith(b"#close")
if is_closed:
    assert re.fullmatch(rb"\d{4}(-\d\d){5}", lines.pop().split(separator)[1])
inner, = header["set_separator"]
unset, empty = header["unset_field"][0], header["empty_field"][0]
assert len(header["fields"]) == len(header["types"])

def value(kind, text):
    if text == unset:
        return None
    if kind.startswith("vector["):
        return [] if text == empty else [value(kind[7:-1], entry) for entry in text.split(inner)]
    if kind == "string":
        return "" if text == empty else unescaped(text).decode()
    if kind in ("count", "int", "port"):
        return int(text)
    if kind in ("time", "double", "interval"):
        return float(text)
    if kind == "bool":
        return {b"T": True, b"F": False}[text]
    assert kind in ("addr", "enum"), kind
    return text.decode()

rows = []
for line in lines:
    assert all(32 <= byte < 127 or byte == 9 for byte in line), line
    cells = line.split(separator)
    assert len(cells) == len(header["fields"]), line
    rows.append({name.decode(): value(kind.decode(), cell)
                 for name, kind, cell in zip(header["fields"], header["types"], cells)})
print(json.dumps({"path": header["path"][0].decode(), "rows": rows, "is_closed": is_closed}))
