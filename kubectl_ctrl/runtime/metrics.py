"""Prometheus metrics with controller-runtime's names, so that existing dashboards and alerts work.

An observer counts attempts; gauges are read from the run at each scrape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kubectl_ctrl.client.counters import Counters
from kubectl_ctrl.model.attempt import Attempt, Observed, Outcome
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.verdict import AttemptTimeout

_TIMES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25)
_LONG_TIMES = (1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60)
_QUEUE_TIMES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0)

# controller-runtime's four results; a dropped attempt has none, since its object was not judged.
_RESULTS = {
    Outcome.DONE: "success",
    Outcome.WAITING: "success",
    Outcome.AFTER: "requeue_after",
    Outcome.AGAIN: "requeue",
    Outcome.RETRY: "error",
    Outcome.TERMINAL: "error",
}


class Metrics:
    """An observer of a run, and the text that Prometheus reads."""

    def __init__(self, controllers: Sequence[str], *, host: str, counters: Counters) -> None:
        self._registry = CollectorRegistry()
        self._state = _State(host, counters)
        self._registry.register(self._state)
        one = ("controller",)
        self._total = self._counter("reconcile", "Reconciles by result.", (*one, "result"))
        self._errors = self._counter("reconcile_errors", "Reconciles that failed.", one)
        self._terminal = self._counter("terminal_reconcile_errors", "Failures that are not retried.", one)
        self._panics = self._counter("reconcile_panics", "Failures by an exception from outside kubectl ctrl.", one)
        self._timeouts = self._counter("reconcile_timeouts", "Reconciles that exceeded their timeout.", one)
        self._seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of reconciles.",
            one,
            buckets=(*_TIMES, *_LONG_TIMES),
            registry=self._registry,
        )
        self._queued = self._queue_histogram("queue", "Time of requests in the queue.")
        self._worked = self._queue_histogram("work", "Duration of reconciles by queue.")
        for name in controllers:
            self._begin(name)

    def _counter(self, name: str, text: str, labels: Sequence[str]) -> Counter:
        return Counter(f"controller_runtime_{name}", text, labels, registry=self._registry)

    def _queue_histogram(self, name: str, text: str) -> Histogram:
        return Histogram(
            f"workqueue_{name}_duration_seconds",
            text,
            ("name", "controller"),
            buckets=_QUEUE_TIMES,
            registry=self._registry,
        )

    def _begin(self, name: str) -> None:
        """Create every series at zero: a rate over one that appears late would miss its first step."""
        for result in ("success", "error", "requeue", "requeue_after"):
            self._total.labels(name, result)
        for counter in (self._errors, self._terminal, self._panics, self._timeouts):
            counter.labels(name)
        self._seconds.labels(name)
        self._queued.labels(name, name)
        self._worked.labels(name, name)

    def attach(self, manager: Manager) -> None:
        """The run to read queues and leadership from."""
        self._state.manager = manager

    def __call__(self, value: Observed) -> None:
        if isinstance(value, Attempt):
            self._count(value)

    def _count(self, attempt: Attempt) -> None:
        name, verdict = attempt.start.controller, attempt.verdict
        self._queued.labels(name, name).observe(attempt.start.waited)
        self._worked.labels(name, name).observe(attempt.took)
        if verdict.outcome not in _RESULTS:
            return
        result = _RESULTS[verdict.outcome]
        self._total.labels(name, result).inc()
        self._seconds.labels(name).observe(attempt.took)
        if result != "error":
            return
        self._errors.labels(name).inc()
        if verdict.outcome is Outcome.TERMINAL:
            self._terminal.labels(name).inc()
        if verdict.error_id == AttemptTimeout.__name__:
            self._timeouts.labels(name).inc()
        elif not verdict.error_id.startswith("CTRL-"):
            self._panics.labels(name).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def __repr__(self) -> str:
        return f"Metrics(attached={self._state.manager is not None})"


class _State(Collector):
    """The gauges at the moment of a scrape."""

    def __init__(self, host: str, counters: Counters) -> None:
        self.manager: Manager | None = None
        self._host = host
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        yield self._requests()
        if self.manager is not None:
            yield from self._workers(self.manager)
            yield from self._queues(self.manager)

    def _requests(self) -> Metric:
        family = CounterMetricFamily(
            "rest_client_requests", "Requests to the API server.", labels=("code", "method", "host")
        )
        totals: dict[tuple[str, str], int] = {}
        for (_, method, code), count in self._counters.requests.items():
            key = (code or "<error>", method)
            totals[key] = totals.get(key, 0) + count
        for (code, method), count in totals.items():
            family.add_metric((code, method, self._host), count)
        return family

    def _workers(self, manager: Manager) -> Iterator[Metric]:
        most = _gauge("controller_runtime_max_concurrent_reconciles", "Workers of a controller.", "controller")
        active = _gauge("controller_runtime_active_workers", "Workers that run a reconcile.", "controller")
        leading = _gauge("leader_election_master_status", "Whether this process leads.", "name")
        for member in manager.members:
            name = (member.spec.name,)
            most.add_metric(name, manager.options.workers)
            active.add_metric(name, member.controller.counts.running)
            leading.add_metric(name, float(member.leading))
        yield from (most, active, leading)

    def _queues(self, manager: Manager) -> Iterator[Metric]:
        labels = ("name", "controller")
        depth = _gauge("workqueue_depth", "Requests that are ready to run.", *labels, "priority")
        unfinished = _gauge(
            "workqueue_unfinished_work_seconds", "Seconds that unfinished reconciles have run, in total.", *labels
        )
        longest = _gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the longest unfinished reconcile has run.",
            *labels,
        )
        adds = CounterMetricFamily("workqueue_adds", "Requests added to the queue.", labels=labels)
        retries = CounterMetricFamily("workqueue_retries", "Retries.", labels=labels)
        for member in manager.members:
            name, counts = (member.spec.name,) * 2, member.controller.counts
            for priority, keys in dict(((0, 0), *counts.ready)).items():
                depth.add_metric((*name, str(priority) if priority else ""), keys)
            unfinished.add_metric(name, counts.unfinished)
            longest.add_metric(name, counts.longest_running)
            adds.add_metric(name, counts.adds)
            retries.add_metric(name, counts.retries)
        yield from (depth, unfinished, longest, adds, retries)


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=labels)
