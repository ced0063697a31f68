"""A small Spark of one's own on loopback: a master and workers with one core each, all ended with the block."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

SPARK = Path(pyspark.__file__).parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    def __init__(self, folder, workers=2):
        self.folder, self.started, self.workers = Path(folder), [], workers
        self.master = f"spark://127.0.0.1:{free_port()}"
        conf = self.folder / "conf"
        conf.mkdir(parents=True)
        # What a process that is killed leaves goes with the folder.
        (self.folder / "tmp").mkdir()
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.ui.enabled": "false",
            "spark.master.rest.enabled": "false",
            "spark.local.dir": str(self.folder / "local"),
        }
        (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        (conf / "log4j2.properties").write_text("rootLogger.level = error\nrootLogger.appenderRef.c.ref = c\n"
            "appender.c.type = Console\nappender.c.name = c\nappender.c.target = SYSTEM_ERR\n"
            "appender.c.layout.type = PatternLayout\nappender.c.layout.pattern = %p %c{1}: %m%n\n")
        self.env = dict(os.environ, SPARK_LOCAL_IP="127.0.0.1", SPARK_CONF_DIR=str(conf), SPARK_HOME=str(SPARK),
                        SPARK_DAEMON_MEMORY="256m", TMPDIR=str(self.folder / "tmp"), PYSPARK_PYTHON=sys.executable, PYTHONDONTWRITEBYTECODE="1",
                        SPARK_DAEMON_JAVA_OPTS="-Dspark.master.rest.enabled=false")

    def start(self, name, *args):
        log = open(self.folder / f"{name}.log", "wb")
        command = [str(SPARK / "bin" / "spark-class"), *args]
        # A session of its own: executors are ended with the worker that started them.
        child = subprocess.Popen(command, env=self.env, stdout=log, stderr=log, start_new_session=True)
        self.started.append(child)
        return child

    def __enter__(self):
        try:
            port = self.master.rsplit(":", 1)[1]
            self.start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port,
                       "--webui-port", "0")
            self.wait_for_port(int(port))
            for i in range(self.workers):
                self.start(f"worker{i}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1",
                           "--memory", "1g", "--webui-port", "0", "--work-dir", str(self.folder / f"work{i}"), self.master)
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_for_port(self, port):
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.2)
        raise RuntimeError("the master does not answer")

    def executors(self):
        """The executors that run now, as process ids: children of our workers."""
        found = []
        ours = {child.pid for child in self.started}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(status.read_text().rsplit(")", 1)[1].split()[1])
                command = (status.parent / "cmdline").read_bytes()
            except (OSError, IndexError):
                continue
            if parent in ours and b"CoarseGrainedExecutorBackend" in command:
                found.append(int(status.parent.name))
        return found

    def executors_ever(self):
        return sum(1 for _ in self.folder.glob("work*/app-*/[0-9]*"))

    def __exit__(self, *_):
        for child in reversed(self.started):
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()

    def night(self, script, *args, on_line=None, on_end=None):
        """Runs the nights; gives the exit code and what was said, line by line."""
        command = [sys.executable, str(script), *args, "--master", self.master]
        child = subprocess.Popen(command, env=self.env, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.started.append(child)
        said = []
        for line in child.stderr:
            said.append(line.rstrip("\n"))
            if on_line and re.match(r"\S+: \w+, \d+ (parts|buckets)", line):
                on_line(line)
            if on_end and ": done, " in line:
                on_end(line)
        return child.wait(), said
