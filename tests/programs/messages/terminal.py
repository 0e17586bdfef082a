"""Runs a command with its stderr on a terminal of its own and prints what was written there. What the command writes on
stdout is not read before a text has appeared on the terminal, so that the command cannot end before."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading

awaited, command = sys.argv[1].encode(), sys.argv[2:]
terminal, end = pty.openpty()
fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CLICOLOR_FORCE")}
environment["TERM"] = "xterm"
process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=end, env=environment)
os.close(end)
written = b""


def read_on():
    """Whether anything was written within a minute."""
    global written
    if not select.select([terminal], [], [], 60)[0]:
        return False
    try:
        some = os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return False
    written += some
    return bool(some)


while awaited not in written and read_on():
    pass
threading.Thread(target=process.stdout.read, daemon=True).start()
while read_on():
    pass
sys.stdout.buffer.write(written)
sys.exit(process.wait())
