"""A subject in a process of its own: every way to die is a verdict, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gallocheck.model.records import Graph, Kind, Op, Place, Setup, Status, Tensor, Trace
from gallocheck.native.child import Child
from gallocheck.native.header import SubjectError
from gallocheck.native.worker import LocalRunner, Worker

from . import toys

ALLOC, COMPUTE = Op(Kind.ALLOC), Op(Kind.COMPUTE)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(toys.toy(), timeout=0.5) as one:
        yield one


def processes_of(session: int) -> list[int]:
    """Processes of a session that still exist, zombies too."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                found.append(int(entry.name))
        except ProcessLookupError:
            continue
    return found


def test_what_is_seen_of_a_trace(worker: Worker) -> None:
    assert worker.describe == "toy"
    run = worker.run(toys.order(0, ALLOC, COMPUTE, Op(Kind.FREE), Op(Kind.ALLOC, 1, fail_nth=1)))
    assert run.opened and run.graphs == (0,) and run.death is None and run.leaked == 0
    assert [s.obs.status for s in run.steps] == [Status.DONE] * 6 + [Status.REFUSED]
    assert [sorted(s.looks) for s in run.steps] == [[], [0], [1], [1], [1], [1], []]
    assert run.steps[3].looks[1].used == (11,) and run.steps[3].looks[1].status == Status.DONE
    assert run.steps[3].places == (Place(0, 0, 0), Place(0, 0, 5))
    assert all(s.places is None for i, s in enumerate(run.steps) if i != 3)


def test_the_local_runner_sees_the_same(worker: Worker) -> None:
    trace = toys.order(0, ALLOC, Op(Kind.ALLOC, 1), Op(Kind.MEASURE), Op(Kind.FREE))
    with LocalRunner(toys.toy()) as local:
        assert local.run(trace) == worker.run(trace, fresh=True)


@pytest.mark.parametrize(
    ("value", "kind", "sign", "code"),
    [
        (toys.ABORT, "abort", "SIGABRT", 0),
        (toys.FAULT, "fault", "SIGSEGV", 0),
        (toys.HANG, "hang", "SIGKILL", 0),
        (toys.EXIT, "exit", "", 7),
    ],
)
def test_a_death_names_the_operation(worker: Worker, value: int, kind: str, sign: str, code: int) -> None:
    trace = toys.order(value, ALLOC)
    run = worker.run(trace)
    assert len(run.steps) == 2 and run.leaked is None
    assert sorted(run.steps[1].looks) == [0], "nothing seen before a death is lost"
    death = run.death
    assert death is not None
    assert (death.step, death.op, death.phase) == (2, trace.ops[2], "run")
    assert (death.kind, death.signal, death.code) == (kind, sign, code)
    assert worker.run(toys.order(0)).death is None, "the next run gets a new child"


def test_the_last_words_are_kept(worker: Worker) -> None:
    death = worker.run(toys.order(toys.ABORT)).death
    assert death is not None and death.stderr == "toy.c:42: assertion failed: it fits"
    death = worker.run(toys.order(toys.CHATTER)).death
    assert death is not None
    assert death.stderr.splitlines() == [f"line {i}" for i in range(980, 1000)]
    death = worker.run(toys.order(toys.FAULT)).death
    assert death is not None and death.stderr == "", "words of an earlier trace are not this one's"


def test_a_death_at_a_look_names_the_operation_before(worker: Worker) -> None:
    run = worker.run(toys.order(toys.ABORT_AT_LOOK, ALLOC))
    assert run.death is not None
    assert (run.death.step, run.death.phase, run.death.kind) == (2, "look", "abort")
    assert run.steps[2].obs.status == Status.DONE and not run.steps[2].looks


def test_a_death_at_the_last_look(worker: Worker) -> None:
    run = worker.run(toys.order(toys.ABORT_AT_LOOK))
    assert run.death is not None
    assert (run.death.step, run.death.phase) == (2, "look")


def test_a_death_while_placements_are_listed(worker: Worker) -> None:
    trace = toys.order(toys.ABORT_AT_PLACES, ALLOC, COMPUTE)
    run = worker.run(trace)
    assert run.death is not None
    assert (run.death.step, run.death.op, run.death.phase) == (3, ALLOC, "places")
    assert run.steps[3].obs.status == Status.DONE


@pytest.mark.parametrize(("value", "kind"), [(toys.ABORT_AT_CLOSE, "abort"), (toys.HANG_AT_CLOSE, "hang")])
def test_a_death_at_close(worker: Worker, value: int, kind: str) -> None:
    run = worker.run(toys.order(value, ALLOC))
    assert run.death is not None and len(run.steps) == 4
    assert (run.death.step, run.death.op, run.death.phase, run.death.kind) == (4, None, "close", kind)
    assert run.leaked is None


def test_a_leak_is_bytes(worker: Worker) -> None:
    assert worker.run(toys.order(toys.LEAK)).leaked == 4096


def test_slow_is_not_hung(worker: Worker) -> None:
    """Six operations of 0.15 s each get on, though together they take longer than the timeout of 0.5 s."""
    slow = Op(Kind.CAPACITY, value=toys.SLOW)
    run = worker.run(toys.order(toys.SLOW, slow, slow, slow, slow, slow))
    assert run.death is None and len(run.steps) == 8


def test_a_whole_trace_has_a_limit() -> None:
    slow = Op(Kind.CAPACITY, value=toys.SLOW)
    with Worker(toys.toy(), timeout=0.4, limit=0.5) as worker:
        death = worker.run(toys.order(toys.SLOW, *[slow] * 20)).death
    assert death is not None and death.kind == "hang" and 3 <= death.step <= 8


def test_a_subject_that_closes_our_descriptors(worker: Worker) -> None:
    run = worker.run(toys.order(toys.CLOSE_FILES))
    assert run.death is not None and (run.death.kind, run.death.step) == ("hang", 2)


def test_a_subject_that_left_a_process_behind(worker: Worker) -> None:
    run = worker.run(toys.order(toys.FORK))
    assert run.death is not None and run.death.kind == "abort"
    assert worker.run(toys.order(0)).death is None
    assert len(processes_of(worker._zygote.pid)) <= 2, "the zygote and one child; what was left is gone"


def test_a_graph_that_the_subject_does_not_take(worker: Worker) -> None:
    graphs = (Graph((Tensor(13),)), toys.PAIR_OF_TENSORS, Graph(()))
    ops = (Op(Kind.NEW), Op(Kind.ALLOC, graph=1), Op(Kind.RESERVE, graph=0), Op(Kind.ALLOC, graph=2))
    run = worker.run(Trace(toys.SETUP, graphs, ops))
    assert run.graphs == (-1, 0, 1)
    assert [s.obs.status for s in run.steps] == [Status.DONE, Status.DONE, Status.MISUSE, Status.DONE]
    assert run.steps[1].obs.used == (11,) and run.steps[3].places == ()


def test_a_setup_that_the_subject_does_not_take(worker: Worker) -> None:
    run = worker.run(Trace(Setup((), ()), (), (Op(Kind.NEW),)))
    assert not run.opened and run.steps == [] and run.leaked is None


def test_many_in_a_row_are_what_each_alone_is(worker: Worker) -> None:
    traces = [toys.order(v, *[ALLOC] * k) for k, v in enumerate((0, toys.ABORT, toys.LEAK, toys.HANG, 0, 0))]
    seen = []
    for trace, run in worker.run_all(iter(traces)):
        seen.append((trace, run))
        assert worker.run(traces[2]).leaked == 4096, "a run in between disturbs none of them"
    assert seen == [(trace, worker.run(trace)) for trace in traces]
    assert list(worker.run_all([])) == []


def test_leaving_many_in_a_row_early(worker: Worker) -> None:
    for _, run in worker.run_all([toys.order(0), toys.order(toys.ABORT), toys.order(0)]):
        assert run.death is None
        break
    assert worker.run(toys.order(0)).death is None


def test_a_status_that_the_header_does_not_know_is_blamed_on_its_trace(worker: Worker) -> None:
    for _ in range(2):
        with pytest.raises(SubjectError, match="answered an operation with status 7"):
            worker.run(toys.order(toys.STATUS))
        assert worker.run(toys.order(0)).death is None


def test_fresh_means_a_child_that_ran_nothing(worker: Worker) -> None:
    trace = toys.order(0, ALLOC, COMPUTE)  # the toy's digest counts the sessions of its process
    assert worker.run(trace, fresh=True).steps[-1].obs.digest == 1000
    assert worker.run(trace).steps[-1].obs.digest == 2000
    assert worker.run(trace, fresh=True).steps[-1].obs.digest == 1000


def test_a_defect_is_planted_in_the_child() -> None:
    with Worker(toys.toy(), defect=1) as worker:
        assert worker.run(toys.order(0, ALLOC, COMPUTE)).steps[-1].obs.digest == 1001
    with pytest.raises(SubjectError, match="no planted defect 2"):
        Worker(toys.toy(), defect=2)


def test_a_long_trace_grows_the_block(worker: Worker) -> None:
    trace = toys.order(0, *[ALLOC, COMPUTE] * 1500)
    run = worker.run(trace)
    assert len(run.steps) == 3003 and run.steps[-2].places == (Place(0, 0, 0), Place(0, 0, 5))
    assert worker.run(toys.order(0)).death is None


def test_an_empty_trace(worker: Worker) -> None:
    run = worker.run(Trace(toys.SETUP))
    assert run.steps == [] and run.leaked == 0 and run.opened


def test_a_child_killed_between_traces_is_no_verdict(worker: Worker) -> None:
    worker.run(toys.order(0))
    assert worker._child is not None
    os.kill(worker._child.process, signal.SIGKILL)
    time.sleep(0.05)
    assert worker.run(toys.order(0)).death is None


def kill_soon(process: int) -> threading.Timer:
    timer = threading.Timer(0.05, os.kill, (process, signal.SIGKILL))
    timer.start()
    return timer


def test_a_child_killed_at_work_is_no_verdict_and_its_trace_is_run_again(worker: Worker) -> None:
    for trace in (toys.order(toys.SLOW), toys.order(toys.SLOW, ALLOC, COMPUTE)):
        worker.run(toys.order(0))
        assert worker._child is not None
        before = worker._child.process
        kill_soon(before)
        run = worker.run(trace)
        assert run.death is None and len(run.steps) == len(trace.ops) and worker._child.process != before
    assert [seen.obs.status for seen in run.steps[3:]] == [Status.DONE, Status.DONE]


def test_a_subject_that_is_killed_whenever_it_runs_does_die() -> None:
    with Worker(toys.toy(), timeout=2.0) as worker:
        killers = []
        forked = worker._fork

        def fork() -> Child:
            killers.append(kill_soon(forked().process))
            assert worker._child is not None
            return worker._child

        worker._drop()
        worker._fork = fork  # type: ignore[method-assign]
        death = worker.run(toys.order(toys.SLOW)).death
        assert death is not None and death.from_outside and len(killers) == 3


def test_where_the_process_that_forks_is_killed_nothing_is_said_of_the_subject() -> None:
    with Worker(toys.toy(), timeout=2.0) as worker:
        kill_soon(worker._zygote.pid)
        for trace in (toys.order(toys.SLOW), toys.order(0)):
            with pytest.raises(SubjectError, match="the process that loads it was killed"):
                worker.run(trace)


def test_bad_libraries_are_one_sentence() -> None:
    for path, words in [
        ("/nowhere/lib.so", "no subject library at"),
        (toys.toy("-DTOY_LACKS"), "lacks the function gc_places"),
        (toys.toy("-DTOY_ABI=99"), "has version 99"),
        (toys.toy("-DTOY_DIES"), "could not be loaded: it died. Its last words: toy: no device"),
    ]:
        with pytest.raises(SubjectError) as caught:
            Worker(path)
        assert words in str(caught.value) and "\n" not in str(caught.value)


def test_nothing_is_left_behind() -> None:
    worker = Worker(toys.toy(), timeout=0.3)
    session = worker._zygote.pid
    for value in (0, toys.ABORT, toys.FORK, toys.HANG, 0):
        worker.run(toys.order(value))
    assert processes_of(session)
    worker.close()
    worker.close()
    deadline = time.monotonic() + 2
    while processes_of(session) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes_of(session) == []


SCRIPT = """
import sys
from gallocheck.native.worker import Worker
from {package} import toys
worker = Worker(toys.toy(), timeout=60)
print(worker._zygote.pid, flush=True)
{act}
"""


def start(act: str) -> tuple[subprocess.Popen[str], int]:
    script = SCRIPT.format(package=__package__, act=act)
    roots = [str(Path(__file__).parents[2]), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def gone(session: int) -> bool:
    deadline = time.monotonic() + 3
    while processes_of(session) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not processes_of(session)


def test_the_subject_dies_with_us() -> None:
    process, session = start("worker.run(toys.order(toys.HANG))")
    time.sleep(0.3)
    assert len(processes_of(session)) == 2
    process.kill()
    process.communicate()
    assert gone(session)


def test_ctrl_c_is_clean() -> None:
    act = """
try:
    worker.run(toys.order(toys.HANG))
except KeyboardInterrupt:
    print(worker.run(toys.order(0)).death, flush=True)
    worker.close()
    sys.exit(130)
"""
    process, session = start(act)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out.strip(), err) == (130, "None", "")
    assert gone(session)


def test_a_worker_that_nobody_closed_ends_with_the_program() -> None:
    process, session = start("worker.run(toys.order(0))")
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (0, "")
    assert gone(session)
