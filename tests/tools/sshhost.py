"""A hypervisor host to set up over SSH: this machine's own root under an overlay, in a mount
namespace, so that what is written to it leaves no trace. systemd's `systemctl` is the real one,
which works on files in such a root; `virsh` and `update-grub` are small stand-ins. Root may log in,
and `admin`, who may sudo. Needs root, sshd and sudo.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.tools.libvirtd import run

PROGRAMS = (
    *("sshd", "ssh", "ssh-keygen", "ssh-keyscan"),
    *("systemctl", "unshare", "nsenter", "chroot", "sudo", "useradd"),
)
OF_ADMIN = {
    *(f"/etc/{name}" for name in ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")),
    "/etc/sudoers.d/admin",
}
START = """\
set -e
mount -t tmpfs tmpfs "$1/disk"
mkdir "$1/disk/upper" "$1/disk/work"
mount -t overlay overlay "$1/root" \\
    -o "lowerdir=/,upperdir=$1/disk/upper,workdir=$1/disk/work"
mount --bind /proc "$1/root/proc"
mount --bind /dev "$1/root/dev"
mkdir -p "$1/root/run/sshd" "$1/root/guests"
chroot "$1/root" useradd --create-home --password '*' admin
echo 'Defaults env_keep += "SYSTEMD_OFFLINE"' >"$1/root/etc/sudoers.d/admin"
echo 'admin ALL=(ALL) NOPASSWD: ALL' >>"$1/root/etc/sudoers.d/admin"
cp "$1/virsh" "$1/update-grub" "$1/dpkg-query" "$1/root/usr/local/sbin/"
exec chroot "$1/root" "$2" -D -e -f "$1/sshd_config"
"""
CONFIG = """\
ListenAddress {address}
HostKey {folder}/ecdsa
HostKey {folder}/ed25519
AuthorizedKeysFile {folder}/user.pub
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
SetEnv SYSTEMD_OFFLINE=1
Subsystem sftp internal-sftp
PidFile none
"""
VIRSH = """\
#!/bin/sh
# A guest is a file; one that starts with the host is executable, one of /running runs.
test "$1" != --version || exec echo 11.3.0
shift 2
case "$1" in
define)
    new=$(mktemp /new.XXXXXX)  # several are defined at once
    cat "$3" >"$new"
    mv "$new" "/guests/$(sed -n 's:.*<name>\\(.*\\)</name>.*:\\1:p' "$new")"
    ;;
autostart) if [ "$2" = --disable ]; then chmod -x "/guests/$3"; else chmod +x "/guests/$2"; fi ;;
list) if [ "$2" = --all ]; then ls /guests; else ls /running 2>/dev/null || true; fi ;;
dumpxml) echo "<!-- kept -->" && cat "/guests/$3" ;;
domstate) if [ -e "/running/$2" ]; then echo running; else echo shut off; fi ;;
start) mkdir -p /running && touch "/running/$2" ;;
undefine) rm "/guests/$3" ;;
*) exit 1 ;;
esac
"""
PACKAGES = "#!/bin/sh\nprintf 2025.02-8\n"
GRUB = "#!/bin/sh\ncat /etc/default/grub.d/* > /boot/cmdline 2>&1 || true\n"


def without_devices(setup: Path) -> None:
    """A host's `setup.sh` without its comparison of devices, which this machine has not."""
    text, check = setup.read_text("utf-8"), 'sh "$folder/usr/local/sbin/gpuplan-devices" check'
    assert check in text
    setup.write_text(text.replace(check, ":"), "utf-8")


def absent() -> str | None:
    """What is missing here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    return f"not installed: {', '.join(missing)} (Debian: openssh-server)" if missing else None


@dataclass
class SshHost:
    """A running host; its files lie in `process`'s own view of `folder`/root."""

    folder: Path
    address: str
    process: subprocess.Popen[bytes]

    @property
    def private_key(self) -> str:
        return (self.folder / "user").read_text(encoding="utf-8")

    @property
    def public_key(self) -> str:
        """The host's, without its comment."""
        return " ".join((self.folder / "ed25519.pub").read_text(encoding="utf-8").split()[:2])

    def path(self, name: str) -> Path:
        return Path(f"/proc/{self.process.pid}/root") / name.lstrip("/")

    def files(self) -> set[str]:
        """Files and links of the system that differ from this machine's."""
        upper = self.folder / "disk/upper"
        listed = run(
            *("nsenter", "-t", str(self.process.pid), "-m", "find", upper),
            *("(", "-type", "f", "-o", "-type", "l", ")", "-printf", "/%P\\n"),
        )
        assert listed.ok, listed.output
        found = {p for p in listed.output.split() if p.startswith(("/etc/", "/usr/", "/boot/"))}
        return {p for p in found if p.rstrip("-") not in OF_ADMIN}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def start(folder: Path, address: str) -> SshHost:
    """The host, once it listens on port 22 of the loopback `address`."""
    folder.chmod(0o711)  # for the key that admin may log in with
    for name in ("disk", "root"):
        (folder / name).mkdir()
    for name, kind in (("ecdsa", "ecdsa"), ("ed25519", "ed25519"), ("user", "ed25519")):
        assert run("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", folder / name).ok
    for name, text in (("virsh", VIRSH), ("update-grub", GRUB), ("dpkg-query", PACKAGES)):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    config = CONFIG.format(address=address, folder=folder)
    (folder / "sshd_config").write_text(config, encoding="utf-8")
    daemon = shutil.which("sshd")
    assert daemon is not None
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", START, "sh"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, str(folder), daemon], stdout=log, stderr=log)
    for _ in range(100):
        if process.poll() is not None:
            break
        if "ed25519" in run("ssh-keyscan", "-t", "ed25519", address).output:
            return SshHost(folder, address, process)
        time.sleep(0.1)
    process.kill()
    raise RuntimeError((folder / "log").read_text(encoding="utf-8"))
