"""A Spark cluster on this machine: a master and workers as processes of their own, which can be killed."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyspark

SPARK = Path(pyspark.__file__).parent / "bin"

# The processes are too short for a compiler that optimises.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# How long a process may take to do what is waited for, in seconds.
PATIENCE = 240


class Cluster:
    """A master and its workers, with their files in a folder. All of them end with the block."""

    def __init__(self, folder):
        self.folder = folder
        self.workers = []
        self.started = []

    def __enter__(self):
        try:
            # The port is chosen by the system, and found in what the master says.
            said = self.start("Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            self.url = wait_for(lambda: re.search(r"spark://127\.0\.0\.1:\d+", said.read_text()), "the master").group()
            for _ in range(2):
                self.add_worker()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error):
        for process in self.started:
            kill(process)

    def start(self, what, *arguments):
        """Starts a process in a group of its own; returns the file with what it says."""
        said = self.folder / f"{what}-{len(self.started)}.log"
        command = [SPARK / "spark-class", f"org.apache.spark.deploy.{what.lower()}.{what}", *arguments]
        with open(said, "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment(), start_new_session=True)
        self.started.append(process)
        return said

    def environment(self):
        """The environment of all processes."""
        local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(self.folder)}
        daemons = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS}
        return {**os.environ, **local, **daemons}

    def add_worker(self):
        """Starts a worker with one core."""
        options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "512m"]
        said = self.start("Worker", *options, "--work-dir", str(self.folder / "work"), self.url)
        wait_for(lambda: "Successfully registered" in said.read_text(), "a worker")
        self.workers.append(self.started[-1])

    def kill_worker_of(self, pid):
        """Kills the worker, with its executor, that a process is a part of."""
        groups = {worker.pid: worker for worker in self.workers}
        while os.getpgid(pid) not in groups:
            pid = parent(pid)
        kill(groups[os.getpgid(pid)])

    def submit(self, script, *arguments):
        """Starts an application; what it says on stderr goes into a file."""
        conf = {
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.log.level": "WARN",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.task.maxFailures": "2",
        }
        settings = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
        said = self.folder / f"application-{len(self.started)}.log"
        command = [SPARK / "spark-submit", "--master", self.url, *settings, script, *arguments]
        with open(said, "w") as log:
            environment = {**self.environment(), "PYSPARK_PYTHON": sys.executable}
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        self.started.append(process)
        return process, said


def parent(pid):
    """The parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill(process):
    """Kills a process with its group, and waits for it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(condition, what):
    """The first value that is true."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if value := condition():
            return value
        time.sleep(0.05)
    raise TimeoutError(f"{what} did not come in {PATIENCE} s")
