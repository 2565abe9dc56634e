"""Holds recorded exchanges with authentik's API against the client that authentik publishes for a release.

check.py VERSION EXCHANGES [requests] imports authentik_client, which is generated from that release's own OpenAPI schema, and
reads one exchange a line: {"method", "path", "query", "request", "status", "response"}. Of each it asks whether the
release has the operation, knows every query parameter and every field that was sent and got what it requires, and
whether what was answered is named and typed as in the release. Fields that an answer lacks, or that are null, are no fault: a double
answers what is asked of it and no more. With "requests" the answers are those of another release and not looked at. Prints a line for each fault and a last line with the count; exits 1 on any.
"""

import importlib
import inspect
import json
import pkgutil
import re
import sys
import typing

import pydantic

import authentik_client
import authentik_client.api
import authentik_client.models


class Operation:
    """What the client knows of a method and path."""

    def __init__(self, serialize, call):
        self.method = re.search(r"method='(\w+)'", serialize).group(1)
        path = re.search(r"resource_path='([^']+)'", serialize).group(1)
        self.path = re.compile("/api/v3" + re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)) + "$")
        self.fixed = len(re.sub(r"\{\w+\}", "", path))
        self.query = set(re.findall(r"_query_params\.append\(\('([^']+)'", serialize))
        # The argument that becomes the body; its annotation is the model of what may be sent.
        body = re.search(r"_body_params = (\w+)", serialize)
        self.body = None
        if body:
            annotation = re.search(rf"^\s+{body.group(1)}: (.+?)(?: = None)?,$", call, re.M)
            found = re.findall(r"\b([A-Z]\w+)\b", annotation.group(1)) if annotation else []
            models = [model for model in (model_named(each) for each in found) if model]
            self.body = models[0] if models else None
        self.answers = dict(re.findall(r"'(\d+)': \"(\w+)\"", call))


def model_named(name):
    return getattr(authentik_client.models, name, None) or getattr(authentik_client, name, None)


def operations():
    found = []
    for info in pkgutil.iter_modules(authentik_client.api.__path__):
        module = importlib.import_module(f"authentik_client.api.{info.name}")
        for _, api in inspect.getmembers(module, inspect.isclass):
            if api.__module__ != module.__name__:
                continue
            for name, function in inspect.getmembers(api, inspect.isfunction):
                serialize = getattr(api, f"_{name}_serialize", None)
                if serialize and not name.startswith("_"):
                    found.append(Operation(inspect.getsource(serialize), inspect.getsource(function)))
    # The path with the most fixed text first: /users/me/ before /users/{id}/.
    return sorted(found, key=lambda operation: -operation.fixed)


def one_of(model):
    """The models that a oneOf of the schema may be, by the component that they name."""
    return [model_named(name) for name in model.model_fields["one_of_schemas"].default] if "one_of_schemas" in model.model_fields else None


def chosen(model, value):
    """The alternative of a oneOf whose component is the value's; the model itself where it is none."""
    alternatives = one_of(model)
    if alternatives is None:
        return model
    for alternative in alternatives:
        component = alternative.model_fields.get("component")
        if component and component.default == value.get("component"):
            return alternative
    return None


def nested(annotation):
    """The model inside Optional, List and Annotated; none inside a Dict, whose keys are free."""
    if typing.get_origin(annotation) is dict:
        return None
    if inspect.isclass(annotation) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        found = nested(argument)
        if found:
            return found
    return None


def strangers(model, value, where):
    """Fields of a value that its model does not have."""
    if isinstance(value, list):
        for each in value:
            yield from strangers(model, each, where + "[]")
        return
    if not isinstance(value, dict):
        return
    model = chosen(model, value)
    if model is None:
        yield f"{where}: no component {value.get('component')!r}"
        return
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    if "additional_properties" in fields:
        return
    for key, inner in value.items():
        if key not in fields:
            yield f"{where}.{key}: unknown"
        else:
            under = nested(fields[key].annotation)
            if under:
                yield from strangers(under, inner, f"{where}.{key}")


def faults(model, value, where, may_lack):
    yield from strangers(model, value, where)
    for each in value if isinstance(value, list) else [value]:
        alternative = chosen(model, each)
        if alternative is None:
            continue
        try:
            alternative.model_validate_json(json.dumps(each))
        except pydantic.ValidationError as failed:
            for error in failed.errors(include_url=False):
                if not (may_lack and (error["type"] == "missing" or error["input"] is None)):
                    yield f"{where}.{'.'.join(str(part) for part in error['loc'])}: {error['msg']}"


def judge(known, exchange, answers):
    matching = [operation for operation in known if operation.path.match(exchange["path"])]
    operation = next((operation for operation in matching if operation.method == exchange["method"]), None)
    if operation is None:
        yield "no such operation" + (": " + ", ".join(sorted({each.method for each in matching})) if matching else "")
        return
    for parameter in sorted(set(exchange.get("query") or {}) - operation.query):
        yield f"query parameter {parameter}: unknown"
    sent = exchange.get("request")
    # What was refused as it should be is sent wrong on purpose.
    if sent is not None and exchange["status"] < 400:
        if operation.body is None:
            yield "takes no body"
        else:
            yield from faults(operation.body, sent, "request", may_lack=False)
    answer = operation.answers.get(str(exchange["status"]))
    model = answer and model_named(answer)
    if answers and exchange["status"] < 300 and exchange.get("response") is not None:
        if model is None:
            yield f"status {exchange['status']} with a body is not among its answers {sorted(operation.answers)}"
        else:
            yield from faults(model, exchange["response"], "response", may_lack=True)


def main(version, exchanges, part=""):
    if authentik_client.__version__ != version:
        sys.exit(f"authentik_client {authentik_client.__version__} is installed, not {version}")
    known, seen, count = operations(), set(), 0
    with open(exchanges, encoding="utf-8") as lines:
        for line in lines:
            exchange = json.loads(line)
            count += 1
            seen.update(f"{exchange['method']} {exchange['path']}: {fault}" for fault in judge(known, exchange, part != "requests"))
    for fault in sorted(seen):
        print(fault)
    print(f"authentik {version}: {count} exchanges, {len(seen)} faults, {len(known)} operations in its client")
    return 1 if seen or not count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
