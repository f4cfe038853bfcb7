"""The runs on dask.distributed: on this machine alone, or on the workers of a cluster."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layout_advise import __version__
from layout_advise.errors import MachineError
from layout_advise.farm.listing import Job
from layout_advise.farm.run_job import FarmOutcome, Order, carry_out, machine_name, stop_session

if TYPE_CHECKING:
    from distributed import Client

RESOURCE = "timed"
"""The resource of a worker that may time; each run takes one, so that a machine makes one run at a time."""
CONNECT_SECONDS = 15
QUIET = {
    "distributed.admin.tick.limit": "1h",
    # these look at the worker a hundred times a second, which would disturb what is timed beside them
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "60s",
}
"""Settings of dask within this process."""
HOW = "dask worker {address} --nthreads 1 --resources timed=1"


def work_off(
    pending: Callable[[Sequence[str]], Sequence[tuple[Job, str | None]]],
    order: Order,
    scheduler: str | None,
    told: Callable[[Job, str | None, FarmOutcome | None], None],
) -> None:
    """Carries out what ``pending`` gives for the machines that there are: pairs of a job and the machine that is to make it
    (None: any). ``told`` is called with each outcome as it comes (None: its worker was lost). However this ends, nothing of
    it is left running. Raises MachineError where there is no dask, no scheduler or no worker that may time. Nothing is
    logged in this process from then on: what goes wrong is raised or in an outcome."""
    # a future that an interrupt left behind is told when it is freed, after everything here has ended
    logging.disable()
    with _client(scheduler) as client:
        machines = _machines(client, scheduler)
        tasks = {}
        try:
            for place, (job, machine) in enumerate(pending(sorted(set(machines.values())))):
                tasks[_submit(client, machines, job, machine, order, -place)] = (job, machine)
            _collect(tasks, told)
        finally:
            client.cancel(list(tasks), force=True)
            with contextlib.suppress(OSError, TimeoutError):
                client.run(stop_session, order.session)


def _submit(client: Client, machines: Mapping[str, str], job: Job, machine: str | None, order: Order, priority: int) -> Any:
    places = [address for address, name in machines.items() if machine in (None, name)]
    return client.submit(
        carry_out,
        job,
        order,
        key=f"{order.session}-{machine or 'any'}-{job.id}",
        resources={RESOURCE: 1},
        workers=places,
        priority=priority,
        pure=False,
        retries=0,
    )


def _collect(
    tasks: Mapping[Any, tuple[Job, str | None]], told: Callable[[Job, str | None, FarmOutcome | None], None]
) -> None:
    from distributed import as_completed

    for future in as_completed(list(tasks)):
        job, machine = tasks[future]
        told(job, machine, future.result() if future.status == "finished" else None)


@contextlib.contextmanager
def _client(scheduler: str | None) -> Iterator[Client]:
    """A client of the cluster, or of one within this process: the runs are processes of their own anyway."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MachineError(
            "cannot run a farm", f"{error.name} is not installed", "pip install 'layout-advise[farm]'"
        ) from error
    with dask.config.set(QUIET), contextlib.ExitStack() as stack:
        if scheduler is None:
            cluster = LocalCluster(
                n_workers=1,
                threads_per_worker=1,
                processes=False,
                resources={RESOURCE: 1},
                dashboard_address=":0",  # no page, but its server would warn where another one has the usual port
                memory_limit=0,
                silence_logs=50,
            )
            stack.enter_context(cluster)
            yield stack.enter_context(Client(cluster))
            return
        try:
            client = Client(scheduler, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise MachineError(f"no scheduler at {scheduler}", _short(error), "start one with: dask scheduler") from error
        yield stack.enter_context(client)


def _short(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _machines(client: Client, scheduler: str | None) -> dict[str, str]:
    """Of each worker that may time its machine. All must have this version of layout-advise."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    timed = [address for address, facts in workers.items() if facts.get("resources", {}).get(RESOURCE, 0) >= 1]
    if not timed:
        why = "none of its workers has the resource `timed`" if workers else "it has no workers"
        hint = f"start one a machine: {HOW.format(address=scheduler)}"
        raise MachineError(f"nobody to run the farm at {scheduler}", why, hint)
    try:
        versions = client.run(_version, workers=timed)
    except Exception as error:  # whatever its import raises over there
        raise MachineError(
            f"a worker of {scheduler} cannot import layout-advise", _short(error), "install it there"
        ) from error
    for address, version in versions.items():
        if version != __version__:
            raise MachineError(f"{address} has layout-advise {version}", f"here it is {__version__}", "install the same one")
    return dict(client.run(machine_name, workers=timed))


def _version() -> str:
    return __version__
