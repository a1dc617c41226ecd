"""A client of ProxyService that knows the plain protos and nothing else.

Usage: plain_client.py ADDRESS. Prints "ok NAME" or "FAIL NAME" and why, a line
for each check.
"""

import queue
import sys
import threading
import traceback

import cloudpickle
import grpc
import proxy_pb2 as pb
import proxy_pb2_grpc
import resources_pb2
from google.protobuf import descriptor_pool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.descriptor_pb2 import FileDescriptorProto

CHUNK = 7  # small, so that every body is cut into many chunks
count = 0


def fresh(prefix="plain"):
    global count
    count += 1
    return f"{prefix}-{count}"


def messages(config, body, request_id, session_id, chunk=CHUNK):
    yield pb.ClientExecutionRequest(request_id=request_id, session_id=session_id, config=config)
    for i in range(0, len(body), chunk):
        yield pb.ClientExecutionRequest(request_id=request_id, session_id=session_id, payload=body[i : i + chunk])


def pickled(func, *args, **extra):
    return cloudpickle.dumps({"func": func, "args": args, "kwargs": {}, **extra})


class Answer:
    def __init__(self, responses, request_id, session_id):
        self.logs, body = "", b""
        self.containers = set()
        for response in responses:
            assert response.request_id == request_id, response
            assert response.session_id == session_id, response
            assert response.success and response.worker_id and response.container_id, response
            self.containers.add(response.container_id)
            self.logs += response.logs
            body += response.payload
        self.envelope = cloudpickle.loads(body)


def call(stub, body, session="", config=None, chunk=CHUNK):
    request = fresh()
    responses = stub.RequestExecution(messages(config or pb.ExecutionConfig(), body, request, session, chunk), timeout=60)
    return Answer(responses, request, session)


def error_info():
    """google.rpc.Status and ErrorInfo, by their published field numbers."""
    file = FileDescriptorProto(name="plain_errors.proto", package="plain", syntax="proto3")
    for name, fields in {
        "Any": [("type_url", 1, 9, 1), ("value", 2, 12, 1)],
        "Status": [("code", 1, 5, 1), ("message", 2, 9, 1), ("details", 3, 11, 3)],
        "ErrorInfo": [("reason", 1, 9, 1), ("domain", 2, 9, 1)],
    }.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label in fields:
            message.field.add(name=field, number=number, type=kind, label=label)
            if kind == 11:
                message.field[-1].type_name = ".plain.Any"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [GetMessageClass(pool.FindMessageTypeByName("plain." + n)) for n in ("Status", "ErrorInfo")]


STATUS, ERROR_INFO = error_info()


def refused(responses, code, reason):
    try:
        for _ in responses:
            pass
    except grpc.RpcError as err:
        assert err.code() == code, (err.code(), err.details())
        details = dict(err.trailing_metadata())["grpc-status-details-bin"]
        status = STATUS.FromString(details)
        assert status.code == code.value[0], status
        infos = [d for d in status.details if d.type_url == "type.googleapis.com/google.rpc.ErrorInfo"]
        assert len(infos) == 1, status
        info = ERROR_INFO.FromString(infos[0].value)
        assert (info.domain, info.reason) == ("hearth", reason), info
        assert err.details(), "no text"
        return
    raise AssertionError("it was not refused")


def check_closure(stub):
    factor = 6

    def times(n):
        print("times", n)
        return n * factor

    answer = call(stub, pickled(times, 7))
    assert answer.envelope == {"ok": True, "value": 42, "output": ["times 7\n"]}, answer.envelope
    assert answer.logs == "times 7\n", answer.logs


def check_value_of_any_type(stub):
    answer = call(stub, pickled(lambda: {"set": {1, 2}, "bytes": b"\x00\xff", "f": lambda x: x + 1}))
    value = answer.envelope["value"]
    assert value["set"] == {1, 2} and value["bytes"] == b"\x00\xff" and value["f"](1) == 2


def check_large_both_ways(stub):
    body = b"\x80" * (5 << 20)
    answer = call(stub, pickled(lambda b: b[::-1], body), chunk=1 << 20)
    assert answer.envelope["value"] == body


def check_exception_is_data(stub):
    def bad():
        print("before")
        raise ValueError("no")

    envelope = call(stub, pickled(bad)).envelope
    assert envelope["ok"] is False and envelope["exc_type"] == "ValueError" and envelope["message"] == "no", envelope
    assert "raise ValueError" in envelope["traceback"] or "in bad" in envelope["traceback"], envelope
    assert envelope["output"] == ["before\n"], envelope


def check_not_a_pickle_is_data(stub):
    assert call(stub, b"nothing that anybody pickled").envelope["ok"] is False


def check_packages_in_the_pickle(stub):
    def greet():
        import greeter

        return greeter.WORD

    assert call(stub, pickled(greet)).envelope["exc_type"] == "ModuleNotFoundError"
    assert call(stub, pickled(greet, packages=["greeter==1.0"])).envelope["value"] == "hello"
    config = pb.ExecutionConfig(packages=["greeter == 1.0"])
    assert call(stub, pickled(greet), config=config).envelope["value"] == "hello"


def check_session(stub):
    def step():
        import builtins

        builtins.steps = getattr(builtins, "steps", 0) + 1
        return builtins.steps

    first, second = call(stub, pickled(step), "kept"), call(stub, pickled(step), "kept")
    assert (first.envelope["value"], second.envelope["value"]) == (1, 2)
    assert first.containers == second.containers and len(first.containers) == 1
    other = call(stub, pickled(step), "other")
    assert other.envelope["value"] == 1 and other.containers != first.containers
    small = resources_pb2.ResourceBudget(kind=resources_pb2.RESOURCE_KIND_MEMORY, alloc=128 << 20, max=256 << 20)
    cold = pb.ExecutionConfig(disable_optimized_execution=True, budgets=[small])
    values = [call(stub, pickled(step), "cold", cold).envelope["value"] for _ in range(2)]
    assert values == [1, 2], "a cold session goes on"
    refused(
        stub.RequestExecution(messages(cold, pickled(step), fresh(), "kept"), timeout=60),
        grpc.StatusCode.FAILED_PRECONDITION, "SESSION_RESTORED",
    )
    assert call(stub, pickled(step), "kept").envelope["value"] == 3, "nothing was torn down"


def check_disable_optimized_execution(stub):
    config = pb.ExecutionConfig(
        imports=["json"],
        disable_optimized_execution=True,
        budgets=[resources_pb2.ResourceBudget(kind=resources_pb2.RESOURCE_KIND_MEMORY, alloc=128 << 20, max=256 << 20)],
    )
    assert call(stub, pickled(lambda: 1), config=config).envelope["value"] == 1


def check_bad_first_messages(stub):
    for name, first in {
        "a payload": pb.ClientExecutionRequest(request_id="bad", payload=b"x"),
        "nothing": pb.ClientExecutionRequest(request_id="bad"),
        "no request_id": pb.ClientExecutionRequest(config=pb.ExecutionConfig()),
    }.items():
        try:
            refused(stub.RequestExecution(iter([first]), timeout=30), grpc.StatusCode.INVALID_ARGUMENT, "FIRST_MESSAGE_INVALID")
        except AssertionError as err:
            raise AssertionError(name) from err
    second = [pb.ClientExecutionRequest(request_id="two", config=pb.ExecutionConfig())] * 2
    refused(stub.RequestExecution(iter(second), timeout=30), grpc.StatusCode.INVALID_ARGUMENT, "SECOND_CONFIG")
    config = pb.ExecutionConfig(packages=["greeter @ file:///etc/passwd"])
    first = pb.ClientExecutionRequest(request_id="package", config=config)
    refused(stub.RequestExecution(iter([first]), timeout=30), grpc.StatusCode.INVALID_ARGUMENT, "PACKAGE_INVALID")


def check_expired_session(stub):
    def die():
        import os

        os._exit(3)

    body = pickled(die)
    refused(
        stub.RequestExecution(messages(pb.ExecutionConfig(), body, fresh(), "doomed"), timeout=60),
        grpc.StatusCode.UNAVAILABLE, "EXECUTOR_DIED",
    )
    refused(
        stub.RequestExecution(messages(pb.ExecutionConfig(), body, fresh(), "doomed"), timeout=60),
        grpc.StatusCode.NOT_FOUND, "SESSION_EXPIRED",
    )


def check_duplicate_request(stub):
    def wait():
        import time

        print("up")
        time.sleep(600)

    request = fresh()
    responses = stub.RequestExecution(messages(pb.ExecutionConfig(), pickled(wait), request, ""), timeout=60)
    assert next(responses).logs == "up\n", "a line arrives while its function runs"
    refused(
        stub.RequestExecution(messages(pb.ExecutionConfig(), pickled(wait), request, ""), timeout=60),
        grpc.StatusCode.ALREADY_EXISTS, "REQUEST_IN_FLIGHT",
    )
    responses.cancel()


def check_deadline(stub):
    def wait():
        import time

        time.sleep(600)

    responses = stub.RequestExecution(messages(pb.ExecutionConfig(), pickled(wait), fresh(), ""), timeout=2)
    try:
        list(responses)
    except grpc.RpcError as err:
        assert err.code() == grpc.StatusCode.DEADLINE_EXCEEDED, err
        return
    raise AssertionError("no deadline")


def check_half_close_ends_the_body(stub):
    """Nothing runs before the client's half-close, however long it thinks."""
    todo: queue.Queue = queue.Queue()
    request, body = fresh(), pickled(lambda: "ran")
    responses = stub.RequestExecution(iter(todo.get, None), timeout=60)
    seen = []
    reader = threading.Thread(target=lambda: seen.extend(responses))
    reader.start()
    for message in messages(pb.ExecutionConfig(), body, request, ""):
        todo.put(message)
    reader.join(1.5)
    assert reader.is_alive() and not seen, "answered before the body's end"
    todo.put(None)
    reader.join()
    assert Answer(seen, request, "").envelope["value"] == "ran"


def main():
    options = [("grpc.max_receive_message_length", 16 << 20)]
    failed = False
    with grpc.insecure_channel(sys.argv[1], options=options) as channel:
        stub = proxy_pb2_grpc.ProxyServiceStub(channel)
        for name, check in list(globals().items()):
            if not name.startswith("check_"):
                continue
            try:
                check(stub)
                print("ok", name, flush=True)
            except Exception:
                failed = True
                print("FAIL", name, traceback.format_exc().replace("\n", " | "), flush=True)
    sys.exit(failed)


main()
