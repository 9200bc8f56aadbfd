"""What may be shown and kept of objects: never the values of Secrets, nor whatever looks like one.

By kind: of a Secret only metadata and the names of its entries stay. By name: the value under a key such as `password`,
`SMTP_PASS` or `apiTokens` is hidden in any object, while names and references (`secretName`, `tokenSecretRef`) are not.
By form: tokens, private keys and passwords in addresses. The copy of an object that `kubectl apply` leaves in an
annotation is dropped.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, TypeVar

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import SECRETS, Resource

T = TypeVar("T")

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MASK = "***"
# Stands in the metadata of a kept object of which something was hidden: it is not the one that was read.
MASKED = "kubectl-ctrl/masked"

_CONTENTS = ("data", "stringData")
# Patterns as text: `re` compiles and keeps them when they are first needed, and most command lines never do.
_TELLING = (
    r"(?i)(passw(or)?ds?|passphrases?|credentials?|token|secret|authorization|bearer|kubeconfig"
    r"|(access|secret|private|api|client|encryption|signing|shared|account)[-_.]?keys?"
    r"|\.key|id_rsa|id_ed25519|\.dockerconfigjson|\.dockercfg)[-_.]?\d*$"
)
# These tell only as a word of their own, unless another word is before them: `dbPass`, and not `bypass` or `maxTokens`.
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
_TELLING_WORDS = {
    **dict.fromkeys(("pass", "pwd", "pw"), ("by", "first", "last", "multi", "one", "second", "single", "two")),
    "tokens": ("completion", "context", "input", "max", "min", "num", "output", "prompt", "total"),
}
# The working directory, which every shell has in its environment.
_FOLDER = "PWD"
# Known by form: JSON web tokens, private keys, bearer tokens, and passwords in addresses and in connection strings:
# scheme://user:password@host, password=... . Others choose the texts, so no part of one may be gone over again from
# each of its places: a token is looked for where its word begins, and what the word has before it is hidden too. That
# comes last, since the other forms hide more of what begins at the same place.
_FORMS = (
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{8,}"
    r"|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"
    r"|(?i:(?<=password=)|(?<=passwd=)|(?<=pwd=))(?<!\bPWD=)(?<!\bOLDPWD=)(?!\$[({])[^\s;&\"']+"
    r"|(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{8,}\.)"
    r"[A-Za-z0-9_-]*eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
)
# user:password@tcp(host)/name: what is before the host, and in it where the user begins.
_BEFORE_HOST = r"(?<![^\s\"'])[^\s\"']+(?=@[a-z0-9]*\([^\s()]*\)/)"
_USER = r"(?<![^/@:=])[^/@:=]+:(?=.)"
# At the end of a path, which is turned round to find them in one go.
_POSITIONS = r"\A(\]\d+\[)+"
_QUOTED = r'\["((?:[^"\\]|\\.)*)"\]$'
_FORM_SIGNS = ("eyJ", "PRIVATE KEY", "earer ", "@", "word=", "wd=", "WORD=", "WD=")
# In small letters, something of every telling key, and of every form.
_SIGNS = (
    *(b"pass", b"pw", b"credential", b"token", b"secret", b"authorization", b"bearer", b"kubeconfig"),
    *(b"key", b"id_rsa", b"id_ed25519", b"docker", b"last-applied", b"eyj", b"private key", b"@"),
)


def is_secret(resource: Resource | None) -> bool:
    return resource is not None and (resource.group, resource.plural) == (SECRETS.group, SECRETS.plural)


@lru_cache(10_000)
def is_telling(key: str) -> bool:
    """Whether the value under a key of that name is to be hidden: `token`, and not `tokenName`."""
    return re.search(_TELLING, key) is not None or _ends_in_telling_word(key)


def _ends_in_telling_word(key: str) -> bool:
    words = ["", *(word.lower() for word in re.findall(_WORD, key))]
    before = _TELLING_WORDS.get(words[-1])
    return before is not None and words[-2] not in before and key != _FOLDER


def may_hold_secrets(text: bytes) -> bool:
    """Whether an object's JSON has anything that `masked` would look for; far quicker, and never wrongly no."""
    low = text.lower()
    for sign in _SIGNS:  # noqa: SIM110  # asked of everything that is kept
        if sign in low:
            return True
    return False


def masked(obj: T, resource: Resource | None = None) -> tuple[T, bool]:
    """An object or a JSON patch without secrets, sharing all else with it; and whether anything was hidden."""
    walk = _Walk()
    shown = walk.value(obj)
    return (walk.secret(shown) if is_secret(resource) else shown), walk.hidden


def masked_value(value: Any, name: str = "") -> Any:
    """Any JSON value as it may be kept: what stands under that name; itself where nothing is hidden."""
    return _Walk().under(name, value)


def masked_text(text: str) -> str:
    """A message without tokens and keys that are known by their form."""
    for sign in _FORM_SIGNS:  # asked of every text that is kept
        if sign in text:
            return re.sub(_FORMS, MASK, re.sub(_BEFORE_HOST, _without_password, text))
    return text


def _without_password(found: re.Match[str]) -> str:
    user = re.search(_USER, found[0])
    return found[0] if user is None else found[0][: user.start()] + MASK


def masked_difference(one: Difference) -> Difference:
    """A difference with what may not be shown hidden: by the last name on its path, and inside its values."""
    telling = _tells(one.path)
    if telling is None:
        return Difference(path=one.path, old=_gone(one.old), new=_gone(one.new))
    old, new = _shown(one.old, telling), _shown(one.new, telling)
    return one if old is one.old and new is one.new else Difference(path=one.path, old=old, new=new)


@lru_cache(10_000)
def _tells(path: str) -> bool | None:
    """Whether texts at that path are to be hidden; None when nothing there is to be shown."""
    if LAST_APPLIED in path:
        return None
    return is_telling(_last(re.sub(_POSITIONS, "", path[::-1])[::-1])) or _of_variable(path)


def _shown(side: Any, telling: bool) -> Any:
    if isinstance(side, str):
        return HIDDEN if telling else masked_text(side)
    if isinstance(side, list) and telling:
        return _Walk().texts(side)
    return _Walk().value(side) if isinstance(side, dict | list) else side


def _last(path: str) -> str:
    """The name that a path ends in, "" where it ends in an item of a list."""
    if not path.endswith("]"):
        return path.rpartition(".")[2]
    quoted = re.search(_QUOTED, path)
    return quoted[1] if quoted else ""


def _of_variable(path: str) -> bool:
    """`...env[name=DB_PASSWORD].value`."""
    place, _, last = path.rpartition("].")
    return last == "value" and is_telling(place.rpartition("name=")[2])


def _gone(side: Any) -> Any:
    return side if side is ABSENT else HIDDEN


class _Walk:
    """One walk through a value."""

    def __init__(self) -> None:
        self.hidden = False

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            walked = [self.value(part) for part in value]
            return walked if any(new is not old for new, old in zip(walked, value, strict=True)) else value
        return self._text(value) if isinstance(value, str) else value

    def under(self, name: str, part: Any) -> Any:
        """What stands under a name: its texts are hidden where the name tells, and what is deeper goes by its own."""
        if not isinstance(part, str | list) or not is_telling(name):
            return self.value(part)
        return self.all(part) if isinstance(part, str) else self.texts(part)

    def texts(self, items: list[Any]) -> list[Any]:
        """A list under a name that tells."""
        return [self.all(item) if isinstance(item, str) else self.value(item) for item in items]

    def _text(self, text: str) -> str:
        shown = masked_text(text)
        if shown == text:
            return text
        self.hidden = True
        return shown

    def _object(self, obj: Obj) -> Obj:
        changed = {}
        for key, part in obj.items():
            shown = self.under(key, part)
            if shown is not part:
                changed[key] = shown
        if obj.get("kind") == "Secret" and obj.get("apiVersion") == "v1":
            changed |= {part: self.all(obj[part]) for part in _CONTENTS if part in obj}
        # As containers name their environment, {name: DB_PASSWORD, value: ...}, and JSON patches their place.
        name = obj.get("name", obj.get("path"))
        if "value" in obj and isinstance(name, str):
            shown = self.under(name.rpartition("/")[2], obj["value"])
            if shown is not obj["value"]:
                changed["value"] = shown
        if LAST_APPLIED in obj:
            return {key: changed.get(key, part) for key, part in obj.items() if key != LAST_APPLIED}
        return {**obj, **changed} if changed else obj

    def secret(self, obj: Any) -> Any:
        """A Secret without its contents, or a JSON patch of one without its values. A wrong body can be anything."""
        if isinstance(obj, list):
            return [self.secret_step(step) if isinstance(step, dict) else step for step in obj]
        if not isinstance(obj, dict):
            return obj
        return {**obj, **{part: self.all(obj[part]) for part in _CONTENTS if part in obj}}

    def secret_step(self, step: Obj) -> Obj:
        return {**step, "value": self.all(step["value"])} if "value" in step else step

    def all(self, value: Any) -> Any:
        """Every text below, hidden; the places stay."""
        if isinstance(value, dict):
            return {key: self.all(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.all(part) for part in value]
        if value in (None, "", MASK):
            return value
        self.hidden = True
        return MASK
