"""The execution of one call: it is sent, retried, or its object is read after a lost response, as `retry` decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubectl_ctrl.client.lost import WriteFate, fate
from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.responses import answered, refused, unfit_for_a_stream
from kubectl_ctrl.client.retry import FIRST_SHARE, NextAction, RetryStep, SendResult, casts_doubt, decide, pause
from kubectl_ctrl.client.wire import Wire, encoded
from kubectl_ctrl.client.words import plain, sentence
from kubectl_ctrl.errors import (
    AlreadyExists,
    ApiError,
    BadAnswer,
    CallError,
    Conflict,
    CtrlError,
    DeadlinePassed,
    NotFound,
    NotLeading,
    OutcomeUnknown,
    ServerError,
    TooManyRequests,
    Unreachable,
    Untrusted,
)
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream, NotTrusted, TooSlow, TransportFault

# A transport enforces the deadline itself, with a better error; this is the margin for one that does not.
_GRACE = 0.5

_JITTER = 0.1  # so that callers with the same Retry-After do not all retry at the same time

# The remaining seconds of a call (None: no limit), or an error if nothing may be sent any more.
Gate = Callable[[], float | None]
# Reads the object of an order with a timeout, as a separate call; None if it does not exist.
ReadBack = Callable[[Order, float], Awaitable[Obj | None]]


class Flight:
    """The state of one call, for one `send` or one `open`."""

    def __init__(self, wire: Wire, gate: Gate | None, order: Order, audit_id: str, timeout: float) -> None:
        self.order = order
        self.site = order.site(audit_id)
        self.sends = 0
        self.response: HttpResponse | None = None  # of the last send
        self.obj: Obj | None = None  # of the response, or read after a lost one
        self.code: int | None = None  # None without a response
        self._wire = wire
        self._gate = gate
        self._body = encoded(order)
        self._end = wire.clock.elapsed() + timeout
        self._doubt: CallError | None = None  # the error of a send on which the server may have acted

    async def send(self, read_back: ReadBack, *, raw: bool = False) -> None:
        """Send until the call has succeeded or failed."""
        while True:
            sent = await self._send_once(raw)
            doubted = self._doubt is not None
            if casts_doubt(self.order, sent):
                self._doubt = sent.error
            step = decide(self.order, sent, sends=self.sends, doubted=doubted, left=self._left_at_most())
            if await self._settled(step, sent, read_back):
                return

    async def open(self, silence: float | None) -> HttpStream:
        """Send once, for a stream."""
        seconds = self.time_for_a_send()
        request = self._request(seconds, silence)
        stream: HttpStream | None = None
        try:
            async with self._wire.clock.timeout(seconds + _GRACE):
                stream = await self._wire.transport.open(request)
                self.code = stream.status
                if not 200 <= stream.status < 300:
                    response = HttpResponse(status=stream.status, headers=stream.headers, body=await stream.read())
                    raise refused(response, self.order, self.site, self._wire.clock.now())
                if error := unfit_for_a_stream(stream.headers, self.order, self.site):
                    raise error
        except BaseException as exc:
            if stream is not None:
                await stream.close()
            if isinstance(exc, TransportFault | TimeoutError):
                raise self._no_answer(exc, seconds) from exc
            raise
        finally:
            self._count()
        return stream

    def time_for_a_send(self) -> float:
        """The timeout of the next send; raises at the deadline, or if the gate is closed."""
        left = self._left()
        if left <= 0:
            if self._doubt is not None:
                raise self._unknown(self._doubt)
            what = f"{self.site.verb} {self.site.target}"
            raise DeadlinePassed(f"The deadline passed before {what} was sent.", site=self.site)
        return left * FIRST_SHARE if self.order.write and self.sends == 0 else left

    # --- one send

    async def _send_once(self, raw: bool) -> SendResult:
        seconds = self.time_for_a_send()
        request = self._request(seconds, None)
        self.response = self.code = None
        try:
            async with self._wire.clock.timeout(seconds + _GRACE):
                self.response = await self._wire.transport.send(request)
        except (TransportFault, TimeoutError) as exc:
            return SendResult(error=self._no_answer(exc, seconds), lost=not isinstance(exc, TransportFault) or exc.sent)
        else:
            self.code = self.response.status
        finally:
            self._count()
        return self._sent(self.response, raw)

    def _sent(self, response: HttpResponse, raw: bool) -> SendResult:
        self._wire.counters.bytes_in += len(response.body)
        if not 200 <= response.status < 300:
            return SendResult(error=refused(response, self.order, self.site, self._wire.clock.now()))
        if raw:
            return SendResult()
        try:
            self.obj = answered(response, self.order, self.site)
        except BadAnswer as exc:
            return SendResult(error=exc, lost=True)
        return SendResult()

    def _request(self, seconds: float, silence: float | None) -> HttpRequest:
        self.sends += 1
        counters = self._wire.counters
        counters.resends += self.sends > 1
        counters.bytes_out += len(self._body or b"")
        return self._wire.request(self.order, self._body, self.site.audit_id, seconds, silence)

    def _count(self) -> None:
        self._wire.counters.count(self.order.verb, self.order.method, self.code)

    def _no_answer(self, exc: BaseException, seconds: float) -> CallError:
        fault = exc if isinstance(exc, TransportFault) else None
        reason = f" {sentence(plain(str(fault)))}" if fault else ""
        what = f"{self.site.verb} {self.site.target}"
        error: CallError
        if isinstance(exc, TimeoutError | TooSlow):
            late = "in time" if fault else f"within {seconds:.3g} s"  # the fault states the time
            error = DeadlinePassed(
                f"The server did not answer {what} {late}.{reason}",
                site=self.site,
                # A slow write may wait for a webhook while the server is healthy.
                next_step=(fault and self.order.method == "GET" and fault.remedy)
                or "Check the connection; a slow admission webhook can be the reason too.",
            )
        elif isinstance(exc, NotTrusted):
            error = Untrusted(
                f"There was no answer to {what}.{reason}",
                site=self.site,
                next_step=(fault and fault.remedy)
                or "Check the cluster's address and certificate-authority in the kubeconfig.",
            )
        else:
            error = Unreachable(
                f"There was no answer to {what}.{reason}",
                site=self.site,
                next_step=(fault and fault.remedy)
                or "Check that the cluster runs and that this machine reaches its address.",
            )
        error.__cause__ = exc
        return error

    # --- the next step

    async def _settled(self, step: RetryStep, sent: SendResult, read_back: ReadBack) -> bool:
        """Carry out the step; True if the call is complete, False to send again."""
        match step.next:
            case NextAction.DONE:
                return True
            case NextAction.GONE:
                self.obj = _deleted()
                return True
            case NextAction.READ:
                return await self._check_object(sent, read_back)
            case NextAction.RESEND:
                await self._pause(step.pause)
                return False
            case NextAction.UNKNOWN:
                raise self._unknown(sent.error)
        assert sent.error is not None
        raise sent.error

    async def _check_object(self, sent: SendResult, read_back: ReadBack) -> bool:
        """Read the object, and complete the call if the lost write was carried out."""
        live = await self._read(read_back)
        verdict = fate(self.order, live)
        if verdict is WriteFate.DONE:
            self.code, self.obj = None, live if live is not None else _deleted()
            return True
        if verdict is WriteFate.UNCLEAR:
            raise self._unknown(sent.error)
        if isinstance(sent.error, ApiError):  # a rejection counts, unless an earlier send was carried out
            raise sent.error
        if verdict is WriteFate.REFUSED:
            raise self._rejection(live)
        await self._pause(pause(self.sends))
        return False

    async def _read(self, read_back: ReadBack) -> Obj | None:
        """Retry until the deadline, because a server that lost a response may be restarting."""
        tries = 0
        while True:
            tries += 1
            try:
                return await read_back(self.order, self._left())
            except (Unreachable, DeadlinePassed, ServerError, TooManyRequests) as exc:
                if self._left() <= pause(tries):
                    raise self._unknown(exc) from exc
            except CtrlError as exc:
                raise self._unknown(exc) from exc
            await self._pause(pause(tries))

    def _rejection(self, live: Obj | None) -> ApiError:
        """The error with which the server would reject the write if it were sent again."""
        message = f"The answer to {self.site.verb} {self.site.target} was lost, and a read shows that"
        if live is None:
            return NotFound(f"{message} the object does not exist.", site=self.site, code=404, reason="NotFound")
        if self.order.verb == "create":
            message = f"{message} an object of that name exists with another owner or other content."
            return AlreadyExists(message, site=self.site, code=409, reason="AlreadyExists")
        message = f"{message} the object has changed since version {self.order.old_version!r} into something else."
        return Conflict(message, site=self.site, code=409, reason="Conflict", next_step="Read it again and retry.")

    # --- time

    def _left(self) -> float:
        """Seconds until the deadline of the call or the gate, whichever is earlier; raises if the gate is closed."""
        left = self._end - self._wire.clock.elapsed()
        if self._gate is None:
            return left
        try:
            limit = self._gate()
        except CtrlError as exc:
            if self._doubt is not None:
                raise self._unknown(exc) from exc
            if not isinstance(exc, NotLeading):
                raise
            raise NotLeading(exc.message, site=self.site, next_step=exc.next_step) from exc
        return left if limit is None else min(left, limit)

    def _left_at_most(self) -> float:
        """The same, but 0.0 if the gate is closed: a response that has arrived still counts."""
        try:
            return self._left()
        except CtrlError:
            return 0.0

    async def _pause(self, seconds: float) -> None:
        spread = 1 + _JITTER * self._wire.rng.random()
        await self._wire.clock.sleep(min(seconds * spread, max(0.0, self._left())))

    def _unknown(self, last: CtrlError | None) -> OutcomeUnknown:
        message = f"It is unknown whether {self.site.verb} {self.site.target} took effect: its answer was lost."
        error = OutcomeUnknown(
            f"{message} {last.message}" if last is not None else message,
            site=self.site,
            next_step="Read the object to check.",
        )
        error.__cause__ = last
        return error


def _deleted() -> Obj:
    """The server's response to a completed delete, without the UID, which is unknown afterwards."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
