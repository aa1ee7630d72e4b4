"""What plays the engines in pods: says how it was started, then serves, reads or trains as asked.

The file `hang-POD` of its volume makes a server fail its probes; a request to `/slow`
takes SLOW_SECONDS.
"""

from __future__ import annotations

import sys

from tests.tools.image import Image

SLOW_SECONDS = 50  # longer than the pause before a stop
ENGINE = """\
#!/usr/bin/python3
import http.server, json, os, pathlib, shutil, signal, sys, threading, time

def say(**what):
    print(json.dumps(what), flush=True)

def writable(folder):
    try:
        path = pathlib.Path(folder) / f"written-{os.uname().nodename}"
        path.write_text("")
        path.unlink()
        return True
    except OSError:
        return False

status = dict(l.split(":", 1) for l in open("/proc/self/status") if ":" in l)
mounts = [l.split()[1] for l in open("/proc/self/mounts")]
mounts = [m for m in mounts if os.path.isdir(m) and not m.startswith(("/proc", "/sys"))]
shm = os.statvfs("/dev/shm")
name, *words = sys.argv
options = dict(w.removeprefix("--").split("=", 1) for w in words if "=" in w)
say(
    name=os.path.basename(name), words=words, pid=os.getpid(),
    user=os.getuid(), groups=os.getgroups(), environment=dict(os.environ),
    capabilities=int(status["CapEff"], 16), seccomp=int(status["Seccomp"]),
    no_new_privileges=int(status["NoNewPrivs"]), writable={m: writable(m) for m in mounts},
    shm_bytes=shm.f_blocks * shm.f_frsize,
)
if "run-batch" in words:
    shutil.copyfile(options["input-file"], options["output-file"])
    sys.exit()
if name.endswith("axolotl"):
    say(config=pathlib.Path(next(w for w in words if w.startswith("/"))).read_text())
    pathlib.Path("/checkpoints/last").write_text("weights")
    sys.exit()
hang = pathlib.Path(os.environ["HF_HOME"]) / f"hang-{os.uname().nodename}"

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/slow":
            time.sleep(SLOW_SECONDS)
        self.send_response(500 if hang.exists() else 200)
        self.end_headers()
        self.wfile.write(b"served")
    def log_message(self, *_):
        pass

class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False  # closed once all are answered, as the engines do

time.sleep(3)
server = Server(("0.0.0.0", int(options.get("port", 8888))), Handler)
def drain(number, frame):
    say(signal=number)
    threading.Thread(target=server.shutdown).start()
signal.signal(signal.SIGTERM, drain)
server.serve_forever()
server.server_close()
say(drained=True)
""".replace("SLOW_SECONDS", str(SLOW_SECONDS))
HUB = """\
import pathlib
def snapshot_download(model, *, local_dir, **options):
    folder = pathlib.Path(local_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights").write_text(repr((model, options)))
"""
ENTRYPOINTS = {
    "ghcr.io/huggingface/text-embeddings-inference": ("text-embeddings-router",),
    "axolotlai/axolotl": ("sh", "-c", 'exec "$@"', "sh"),
}
PROGRAMS = ("vllm", "text-embeddings-router", "start-notebook.py", "axolotl")
LIBRARY = f"{sys.base_prefix}/lib/python{sys.version_info.major}.{sys.version_info.minor}"
SCRIPTS = {f"usr/bin/{name}": ENGINE for name in PROGRAMS}
SCRIPTS[f"{LIBRARY}/huggingface_hub.py".lstrip("/")] = HUB


def image(name: str) -> Image:
    """The stand-in for what a registry calls `name`: started as that one is, by the same user."""
    repository = name.partition("@")[0].rpartition(":")[0]
    user = "1000:100" if "jupyter" in repository else ""
    full = name if "." in name.partition("/")[0] else f"docker.io/{name}"
    return Image(full, ENTRYPOINTS.get(repository, ()), user)
