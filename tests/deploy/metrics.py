"""Do the alerts and the dashboard name only metrics, labels and values that the service has?

Writes every query of the dashboard as a rule to standard output, for promtool to read.
"""

import json
import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
COUNTS = (ROOT / "src/telemetry/counts.rs").read_text()
SOURCE = "".join(path.read_text() for path in (ROOT / "src").rglob("*.rs"))

# What Prometheus itself adds.
ADDED = {"instance", "job"}
WORDS = {"by", "without", "and", "or", "unless", "offset", "on", "ignoring"}


def metrics():
    """Every series by its name, with its labels."""
    names = dict(re.findall(r'const (\w+): &str = "(sidegate_\w+)"', COUNTS))
    known = {"up": set(), "ALERTS": {"alertname", "alertstate"}}
    for sort, name, labels in re.findall(r"\b(counter|gauge|histogram)!\((\w+)(.*?)\)\.(?:incr|decr|rec)", COUNTS, re.S):
        labels = set(re.findall(r'"(\w+)" =>', labels))
        if sort != "histogram":
            known[names[name]] = labels
            continue
        for suffix in ("_sum", "_count"):
            known[names[name] + suffix] = labels
        known[names[name] + "_bucket"] = labels | {"le"}
    return known


KNOWN = metrics()
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[a-zA-Z_]\w*|[{}()=!~<>,*/+-]+?|\S')


def wrong(expression):
    """What is unknown in a query."""
    tokens = TOKEN.findall(expression)
    found, labels = [], set()
    place, series, label, grouping = "outside", None, None, False
    for position, token in enumerate(tokens):
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        if place == "matchers":
            if token == "}":
                place = "outside"
            elif token.startswith('"'):
                found += wrong_value(label, token[1:-1])
            elif re.match(r"\w", token):
                label = token
                if label not in KNOWN.get(series, set()) | ADDED:
                    found.append(f"{series} has no label {label}")
        elif token == "{":
            place = "matchers"
        elif grouping:
            grouping = token != ")"
            if re.match(r"\w", token):
                labels.add(token)
        elif token in ("by", "without", "on", "ignoring"):
            grouping = True
        elif re.match(r"[a-zA-Z_]", token) and following not in ("(", "by", "without") and token not in WORDS:
            if re.fullmatch(r"\d*[smhd]", token):
                continue
            series = token
            if series not in KNOWN:
                found.append(f"there is no metric {series}")
    used = {name for name in KNOWN if re.search(rf"\b{name}\b", expression)}
    has = set().union(ADDED, *(KNOWN[name] for name in used))
    return found + [f"nothing in it has the label {label}" for label in sorted(labels - has)]


def wrong_value(label, value):
    """What a label is compared with stands in the source as it is."""
    if label in ADDED | {"status", "le", "alertstate", "alertname"}:
        return []
    return [f'no {label} is called "{word}"' for word in value.split("|") if f'"{word}"' not in SOURCE]


def queries():
    """Every query, with where it is and the labels that its words use."""
    alerts = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())
    for group in alerts["groups"]:
        for rule in group["rules"]:
            notes = rule["annotations"]
            if set(notes) != {"summary", "description"}:
                yield rule["alert"], rule["expr"], {"(no summary or no description)"}
            words = re.findall(r"\$labels\.(\w+)", json.dumps(notes))
            yield rule["alert"], rule["expr"], set(words)
    dashboard = json.loads((ROOT / "deploy/grafana/sidegate.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))


def main():
    failures, rules = [], []
    for place, expression, words in queries():
        for sentence in wrong(expression):
            failures.append(f"{place}: {sentence}")
        grouped = re.search(r"\b(?:by)\s*\(([^)]*)\)", expression)
        kept = {label.strip() for label in grouped[1].split(",")} if grouped else ADDED
        failures += [f"{place}: what it shows has no {word}" for word in sorted(words - kept)]
        plain = expression.replace("$__rate_interval", "5m").replace("$instance", ".+")
        rules.append({"record": f"query:{len(rules)}", "expr": plain})
    tests = yaml.safe_load((ROOT / "deploy/prometheus/alerts_test.yaml").read_text())
    for test in tests["tests"]:
        for series in test["input_series"]:
            failures += [f"{test['name']}: {sentence}" for sentence in wrong(series["series"])]
    if failures:
        sys.exit("\n".join(failures))
    print(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))


main()
