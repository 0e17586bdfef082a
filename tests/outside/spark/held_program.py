"""A folder with a `sizeleak` that stops, in the first task of each phase, until its worker is killed."""

from cluster import wait_for

SCRIPT = """#!/bin/sh
case "$*" in
    *"--from -"*) phase=second ;;
    *segments*) phase=first ;;
    *) exec "{program}" "$@" ;;
esac
if mkdir "{folder}/$phase" 2>/dev/null; then
    echo $$ > "{folder}/$phase/new" && mv "{folder}/$phase/new" "{folder}/$phase/pid"
    sleep 300
fi
exec "{program}" "$@"
"""


class HeldProgram:
    """The program, and what is known of its calls."""

    def __init__(self, program, folder):
        self.folder = folder
        folder.mkdir()
        script = folder / "sizeleak"
        script.write_text(SCRIPT.format(program=program, folder=folder))
        script.chmod(0o755)

    def process_of(self, phase):
        """Waits for the call that is held in a phase; its process."""
        pid = self.folder / phase / "pid"
        wait_for(pid.exists, f"the {phase} phase")
        return int(pid.read_text())
