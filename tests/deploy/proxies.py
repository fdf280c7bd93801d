"""Do nginx and Caddy, with the files that are shipped, do what those promise?

Each runs on free ports of loopback, with a certificate of the moment, before a server that answers with what reached it.
"""

import json
import os
import re
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "deploy"
HOST = "gate.example.com"


class Echo(BaseHTTPRequestHandler):
    """Answers with what reached it; at /hold it waits for the other side to hang up."""

    protocol_version = "HTTP/1.1"
    seen = []
    hung_up = threading.Event()

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            # It was broken off on the way.
            self.close_connection = True
            return
        if self.path != "/readyz":
            self.seen.append(self.path)
        if self.path == "/hold":
            if select.select([self.connection], [], [], 10)[0]:
                self.hung_up.set()
            self.close_connection = True
            return
        headers = [[name.lower(), value] for name, value in self.headers.items()]
        text = json.dumps({"path": self.path, "headers": headers, "length": len(body)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Connection(HTTPSConnection):
    """To a port of loopback, for a name."""

    def __init__(self, port, name=HOST):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        super().__init__("127.0.0.1", port, timeout=15, context=context)
        self.name, self.secure = name, context

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=15)
        self.sock = self.secure.wrap_socket(plain, server_hostname=self.name)


def ask(port, path, method="GET", headers=None, body=None):
    connection = Connection(port)
    try:
        connection.request(method, path, body=body, headers={"Host": HOST} | (headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def nginx(folder, port, upstream):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", f"/CN={HOST}",
         "-keyout", folder / "gate-key.pem", "-out", folder / "gate.pem"], check=True, stderr=subprocess.DEVNULL)
    text = (DEPLOY / "nginx/sidegate.conf").read_text()
    text = re.sub(r"^ *listen \[::\].*\n", "", text, flags=re.M)
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}").replace("listen 80;", f"listen 127.0.0.1:{free_port()};")
    text = text.replace("/etc/nginx/tls", str(folder)).replace("/var/log/nginx", str(folder))
    (folder / "sidegate.conf").write_text(text.replace("127.0.0.1:8020", upstream))
    kept = "".join(f"{what}_temp_path {folder}/{what};" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/main.log info; events {{}}\n"
        f"http {{ access_log {folder}/other.log; {kept} include {folder}/sidegate.conf; }}\n")
    command = ["nginx", "-p", folder, "-e", folder / "main.log", "-c", folder / "nginx.conf"]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True)
    if tested.returncode or "[warn]" in tested.stderr:
        sys.exit(f"nginx does not take its file:\n{tested.stderr}")
    return command, {}


def caddy(folder, port, upstream):
    file = DEPLOY / "caddy/Caddyfile"
    variables = {"HOME": str(folder), "XDG_DATA_HOME": f"{folder}/data", "XDG_CONFIG_HOME": f"{folder}/config", "SIDEGATE_INSTANCES": upstream}
    formatted = subprocess.run(["caddy", "fmt", file], capture_output=True, text=True)
    if formatted.stdout != file.read_text():
        sys.exit("caddy/Caddyfile is not as `caddy fmt` writes it")
    own = f"admin off\n skip_install_trust\n local_certs\n auto_https disable_redirects\n https_port {port}\n default_bind 127.0.0.1\n"
    text = file.read_text()
    (folder / "Caddyfile").write_text(re.sub(r"^\{\n", "{\n" + own, text, count=1, flags=re.M))
    for place in (file, folder / "Caddyfile"):
        validated = subprocess.run(
            ["caddy", "validate", "--adapter", "caddyfile", "--config", place], capture_output=True, text=True, env=os.environ | variables)
        if validated.returncode:
            sys.exit(f"Caddy does not take its file:\n{validated.stderr}")
    return ["caddy", "run", "--adapter", "caddyfile", "--config", folder / "Caddyfile"], variables


def wait_until_it_answers(port, process):
    for _ in range(100):
        try:
            if process.poll() is None and ask(port, "/hello")[0] == 200:
                return
        except (OSError, HTTPException):
            pass
        time.sleep(0.1)
    sys.exit("it does not answer")


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got}, not {wanted}")


def walk(port, echo):
    """What the files promise, but for the logs."""
    spoofed = {"X-Forwarded-For": "9.9.9.9, 10.0.0.1", "Forwarded": "for=9.9.9.9", "Referer": f"https://{HOST}/?canary-referer"}
    status, body = ask(port, "/signin/staff/callback?code=canary-code&state=canary-state", headers=spoofed)
    expect("a callback", status, 200)
    reached = json.loads(body)
    values = lambda name: [value for key, value in reached["headers"] if key == name]
    expect("the query is passed on", reached["path"], "/signin/staff/callback?code=canary-code&state=canary-state")
    expect("Host", values("host"), [HOST])
    expect("X-Forwarded-For", values("x-forwarded-for"), ["127.0.0.1"])
    expect("Forwarded", values("forwarded"), [])

    Echo.seen.clear()
    for path in ("/metrics", "/healthz", "/readyz"):
        expect(path, ask(port, path)[0], 404)
    for path in ("/console", "/console/links/1", "/v1/admin/elicitations/search", "/v1/%61dmin/elicitations/search", "//v1/admin/kept/search",
                 "/v1/./admin/kept/search", "/v1/x/../admin/kept/search", "/%63onsole"):
        expect(path, ask(port, path)[0], 403)
    expect("what reached the service of all that", Echo.seen, [])
    expect("a handler's call", ask(port, "/v1/elicitations/x?wait=25")[0], 200)

    status, body = ask(port, "/webhooks/stripe", "POST", body=b"x" * 262_144)
    expect("256 KiB", (status, json.loads(body)["length"]), (200, 262_144))
    Echo.seen.clear()
    try:
        status = ask(port, "/webhooks/stripe", "POST", body=b"x" * 400_000)[0]
    except OSError:
        status = 413  # It hung up while we wrote.
    # Caddy finds out while it passes them on.
    expect("400,000 bytes are refused", status in (413, 502), True)
    expect("what reached the service of them", Echo.seen, [])

    Echo.hung_up.clear()
    leaving = Connection(port)
    leaving.request("GET", "/hold", headers={"Host": HOST})
    time.sleep(0.5)
    leaving.close()
    expect("who hangs up has hung up at the service", Echo.hung_up.wait(5), True)

    other = Connection(port, "other.example.com")
    try:
        other.connect()
        sys.exit("another name is answered")
    except ssl.SSLError:
        pass

    echo.shutdown()
    echo.server_close()
    status = ask(port, "/oauth/callback/github?code=canary-down", headers={"Referer": f"https://{HOST}/?canary-referer"})[0]
    expect("without the service", status in (502, 503), True)


def try_proxy(start):
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        # nginx started by root has workers who are not.
        folder.chmod(0o755)
        echo = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        threading.Thread(target=echo.serve_forever, daemon=True).start()
        command, variables = start(folder, port, f"127.0.0.1:{echo.server_port}")
        with open(folder / "output.log", "w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | variables)
        try:
            wait_until_it_answers(port, process)
            walk(port, echo)
        except BaseException:
            print((folder / "output.log").read_text(), file=sys.stderr)
            raise
        finally:
            process.terminate()
            process.wait()
        logs = {path.name: path.read_text() for path in folder.glob("*.log")}
        together = "".join(logs.values())
        expect("the access log has the path", "/signin/staff/callback" in together and "/oauth/callback/github" in together, True)
        for file, text in logs.items():
            lines = [line for line in text.splitlines() if "canary" in line]
            expect(f"queries in {file}", lines, [])
        print(f"{start.__name__}: does what it promises")


for start in (nginx, caddy):
    try_proxy(start)
