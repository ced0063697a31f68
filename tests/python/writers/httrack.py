"""HTTrack as people run it, but for its politeness: this site is ours."""
import subprocess

OPTIONS = ["--quiet", "--robots=0", "--retries=0", "--sockets=1", "--max-rate=0", "--connection-per-second=0",
           "--disable-security-limits"]


def run(folder, *args):
    done = subprocess.run(["httrack", *args, "-O", str(folder), *OPTIONS], cwd=folder, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(folder)})
    assert done.returncode == 0, done
    return done
