"""A server made of jars: a Java process of our own."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from scripts.neo4j_local.jars import jars_of
from scripts.neo4j_local.java import Java, installed_javas, java_for
from scripts.neo4j_local.record import Server, home_of
from scripts.neo4j_local.release import Release, UnavailableError

STOPS_WITHIN = 60.0  # seconds, then it is killed
FOLDERS = ("conf", "data", "logs", "run", "import", "plugins")


def start(
    release: Release,
    name: str,
    *,
    earlier: Server | None,
    browser: bool,
    heap: str,
    more: Mapping[str, str],
) -> Server:
    """Start the server called *name*; its Bolt does not answer yet, and it has no password yet.

    It takes the ports and the data of the *earlier* one of this name.
    """
    java = _needed_java(release)
    jars = jars_of(release, browser=browser)
    home = home_of(name)
    for folder in FOLDERS:
        (home / folder).mkdir(parents=True, exist_ok=True)
    bolt = _port(earlier.uri) if earlier else free_port()
    http = free_port() if browser else 0
    (home / "conf" / "neo4j.conf").write_text(_settings(release, home, jars, bolt, http, more))
    return Server(
        name=name,
        version=release.version,
        uri=f"bolt://127.0.0.1:{bolt}",
        user="neo4j",
        password="",
        http=f"http://127.0.0.1:{http}/browser/" if http else "",
        pid=_spawn(_command(release, java, jars, home, heap), home),
        container="",
        owner=0,
    )


def is_running(server: Server) -> bool:
    """True while the process of *server* runs, and is not another that got its number."""
    about = Path(f"/proc/{server.pid}")
    try:
        command = (about / "cmdline").read_bytes()
        if not command:  # for a moment that of one that begins, and that of one that is over
            return (about / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
    return f"--home-dir={server.home}".encode() in command.split(b"\0")


def stop(server: Server, *, gently: bool) -> None:
    """End the process and wait for it; with *gently* it shuts down first, in about ten seconds."""
    deadline = time.monotonic() + (STOPS_WITHIN if gently else 0.0)
    if gently and is_running(server):
        os.kill(server.pid, signal.SIGTERM)
    while is_running(server):
        if time.monotonic() >= deadline:
            os.kill(server.pid, signal.SIGKILL)
        time.sleep(0.05)


def last_output(server: Server) -> str:
    """The last line of its log with an error: why it did not start."""
    log = server.home / "logs" / "console.log"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if "ERROR" in line or "Exception" in line or "Error" in line]
    return " ".join((errors or lines or ["no output"])[-1].split())


def free_port() -> int:
    """A port on loopback that nothing listens on now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _needed_java(release: Release) -> Java:
    if java := java_for(release):
        return java
    has = ", ".join(sorted({f"Java {java.major}" for java in installed_javas()})) or "no Java"
    low, high = release.javas[0], release.javas[-1]
    raise UnavailableError(
        f"neo4j {release.version} needs Docker, or Java {low} to {high} and Maven: "
        f"no Docker answers and {has} is installed"
    )


def _port(uri: str) -> int:
    return int(uri.rsplit(":", 1)[1])


def _settings(
    release: Release, home: Path, jars: Path, bolt: int, http: int, more: Mapping[str, str]
) -> str:
    """neo4j.conf with *more* settings; else only those that 5.26 and calendar releases know."""
    settings = {f"server.directories.{name}": str(home / name) for name in FOLDERS[1:]} | {
        "server.directories.lib": str(jars),
        "server.default_listen_address": "127.0.0.1",
        "server.bolt.listen_address": f"127.0.0.1:{bolt}",
        "server.bolt.advertised_address": f"127.0.0.1:{bolt}",
        "server.http.enabled": "true" if http else "false",
        "server.https.enabled": "false",
        "server.memory.pagecache.size": "256m",
        "db.tx_log.preallocate": "false",  # a quarter of a gigabyte for each of two databases
        "dbms.usage_report.enabled": "false",
    }
    if http:
        settings["server.http.listen_address"] = f"127.0.0.1:{http}"
    if release.is_calendar:
        settings["db.query.default_language"] = "CYPHER_25"  # as in the configuration it ships
    return "".join(f"{key}={value}\n" for key, value in {**settings, **more}.items())


def _command(release: Release, java: Java, jars: Path, home: Path, heap: str) -> list[str]:
    """Java with the options of Neo4j's own launcher; it chooses its collector by the machine."""
    options = [
        f"-Xms{heap}",
        f"-Xmx{heap}",
        "-XX:-OmitStackTraceInFastThrow",
        "-Dlog4j2.disable.jmx=true",
        "-Dfile.encoding=UTF-8",
        "--add-opens=java.base/java.nio=ALL-UNNAMED",
        "--add-opens=java.base/java.io=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
        "--enable-native-access=ALL-UNNAMED",
    ]
    if java.major >= 21:
        options.append("--add-modules=jdk.incubator.vector")  # cosines by SIMD
    if java.major >= 24:
        options.append("--sun-misc-unsafe-memory-access=allow")
    entry = "Neo4jCommunity" if release.is_calendar else "CommunityEntryPoint"
    arguments = [f"--home-dir={home}", f"--config-dir={home / 'conf'}", "--console-mode"]
    classes = f"{jars}/*:{home / 'conf'}"
    return [str(java.path), "-cp", classes, *options, f"org.neo4j.server.{entry}", *arguments]


def _spawn(command: list[str], home: Path) -> int:
    with (home / "logs" / "console.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=home,
            env={**os.environ, "NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process.pid
