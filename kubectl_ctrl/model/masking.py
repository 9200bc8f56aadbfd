"""Masking of secret values before objects are printed or recorded.

By kind: a Secret keeps only its metadata and the keys of its data. By name: the value of a key such as `password`,
`SMTP_PASS` or `apiTokens` is hidden in any object, but not names and references (`secretName`, `tokenSecretRef`). By
pattern: tokens, private keys and passwords in URLs. The annotation of `kubectl apply` with a copy of the object is
removed.
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
# In the metadata of a recorded object with hidden values: it differs from the object that was read.
MASKED = "kubectl-ctrl/masked"

_CONTENTS = ("data", "stringData")
# Patterns are strings, which `re` compiles and caches at their first use, because most commands never use them.
_KEY_PATTERN = (
    r"(?i)(passw(or)?ds?|passphrases?|credentials?|token|secret|authorization|bearer|kubeconfig"
    r"|(access|secret|private|api|client|encryption|signing|shared|account)[-_.]?keys?"
    r"|\.key|id_rsa|id_ed25519|\.dockerconfigjson|\.dockercfg)[-_.]?\d*$"
)
# These count only as separate words, and not after certain words: `dbPass`, but neither `bypass` nor `maxTokens`.
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
_LAST_WORDS = {
    **dict.fromkeys(("pass", "pwd", "pw"), ("by", "first", "last", "multi", "one", "second", "single", "two")),
    "tokens": ("completion", "context", "input", "max", "min", "num", "output", "prompt", "total"),
}
# The working directory, in the environment of every shell.
_FOLDER = "PWD"
# JSON web tokens, private keys, bearer tokens, and passwords in URLs and connection strings: scheme://user:password@host,
# password=... . Users choose the texts, so matching must take linear time, without backtracking from every position: a
# web token is searched only at the beginning of a word, and the word's text before it is hidden too. It is the last
# alternative, because the others hide more from the same position.
_FORMS = (
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{8,}"
    r"|(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"
    r"|(?i:(?<=password=)|(?<=passwd=)|(?<=pwd=))(?<!\bPWD=)(?<!\bOLDPWD=)(?!\$[({])[^\s;&\"']+"
    r"|(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{8,}\.)"
    r"[A-Za-z0-9_-]*eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
)
# user:password@tcp(host)/name: the text before the host, and the user inside it.
_BEFORE_HOST = r"(?<![^\s\"'])[^\s\"']+(?=@[a-z0-9]*\([^\s()]*\)/)"
_USER = r"(?<![^/@:=])[^/@:=]+:(?=.)"
# Indexes at the end of a path. The path is reversed, so that they are found in linear time.
_INDEXES = r"\A(\]\d+\[)+"
_QUOTED = r'\["((?:[^"\\]|\\.)*)"\]$'
_FORM_SIGNS = ("eyJ", "PRIVATE KEY", "earer ", "@", "word=", "wd=", "WORD=", "WD=")
# In lower case, a part of every secret key and of every pattern.
_SIGNS = (
    *(b"pass", b"pw", b"credential", b"token", b"secret", b"authorization", b"bearer", b"kubeconfig"),
    *(b"key", b"id_rsa", b"id_ed25519", b"docker", b"last-applied", b"eyj", b"private key", b"@"),
)


def is_secret(resource: Resource | None) -> bool:
    return resource is not None and (resource.group, resource.plural) == (SECRETS.group, SECRETS.plural)


@lru_cache(10_000)
def is_secret_key(key: str) -> bool:
    """Whether the values of such a key are secret: `token`, but not `tokenName`."""
    if re.search(_KEY_PATTERN, key):
        return True
    words = ["", *(word.lower() for word in re.findall(_WORD, key))]
    before = _LAST_WORDS.get(words[-1])
    return before is not None and words[-2] not in before and key != _FOLDER


def may_hold_secrets(text: bytes) -> bool:
    """Whether `masked` may hide anything in an object's JSON. Much faster than `masked`; False is certain."""
    low = text.lower()
    for sign in _SIGNS:  # noqa: SIM110  # faster than any(), and called for everything that is recorded
        if sign in low:
            return True
    return False


def masked(obj: T, resource: Resource | None = None) -> tuple[T, bool]:
    """A copy of an object or JSON patch without secrets, sharing unchanged parts; and whether anything was hidden."""
    walk = _Walk()
    shown = walk.value(obj)
    return (walk.secret(shown) if is_secret(resource) else shown), walk.hidden


def masked_value(value: Any, name: str = "") -> Any:
    """The JSON value of that key without secrets; the same object if nothing is hidden."""
    return _Walk().under(name, value)


def masked_text(text: str) -> str:
    """A message without tokens, keys and passwords that match a pattern."""
    for sign in _FORM_SIGNS:  # called for every text that is recorded
        if sign in text:
            return re.sub(_FORMS, MASK, re.sub(_BEFORE_HOST, _without_password, text))
    return text


def _without_password(found: re.Match[str]) -> str:
    user = re.search(_USER, found[0])
    return found[0] if user is None else found[0][: user.start()] + MASK


def masked_difference(one: Difference) -> Difference:
    """A difference without secrets, by the last key of its path and inside its values."""
    secret = _is_secret_path(one.path)
    if secret is None:
        old, new = (side if side is ABSENT else HIDDEN for side in (one.old, one.new))
        return Difference(path=one.path, old=old, new=new)
    old, new = _shown(one.old, secret), _shown(one.new, secret)
    return one if old is one.old and new is one.new else Difference(path=one.path, old=old, new=new)


@lru_cache(10_000)
def _is_secret_path(path: str) -> bool | None:
    """Whether strings at that path are secret; None if all values there are."""
    if LAST_APPLIED in path:
        return None
    return is_secret_key(_last_key(re.sub(_INDEXES, "", path[::-1])[::-1])) or _is_secret_variable(path)


def _shown(side: Any, secret: bool) -> Any:
    if isinstance(side, str):
        return HIDDEN if secret else masked_text(side)
    if isinstance(side, list) and secret:
        return _Walk().texts(side)
    return _Walk().value(side) if isinstance(side, dict | list) else side


def _last_key(path: str) -> str:
    """The last key of a path, "" for an item of a list."""
    if not path.endswith("]"):
        return path.rpartition(".")[2]
    quoted = re.search(_QUOTED, path)
    return quoted[1] if quoted else ""


def _is_secret_variable(path: str) -> bool:
    """`...env[name=DB_PASSWORD].value`."""
    variable, _, last = path.rpartition("].")
    return last == "value" and is_secret_key(variable.rpartition("name=")[2])


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
        """The value of a key: its strings are hidden if the key is secret; deeper values depend on their own keys."""
        if not isinstance(part, str | list) or not is_secret_key(name):
            return self.value(part)
        return self.all(part) if isinstance(part, str) else self.texts(part)

    def texts(self, items: list[Any]) -> list[Any]:
        """A list under a secret key."""
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
        # The environment of containers, {name: DB_PASSWORD, value: ...}, and JSON patches, {path: ..., value: ...}.
        name = obj.get("name", obj.get("path"))
        if "value" in obj and isinstance(name, str):
            shown = self.under(name.rpartition("/")[2], obj["value"])
            if shown is not obj["value"]:
                changed["value"] = shown
        if LAST_APPLIED in obj:
            return {key: changed.get(key, part) for key, part in obj.items() if key != LAST_APPLIED}
        return {**obj, **changed} if changed else obj

    def secret(self, obj: Any) -> Any:
        """A Secret without its data, or a JSON patch of one without its values. An invalid body may be anything."""
        if isinstance(obj, list):
            return [
                {**step, "value": self.all(step["value"])} if isinstance(step, dict) and "value" in step else step
                for step in obj
            ]
        if not isinstance(obj, dict):
            return obj
        return {**obj, **{part: self.all(obj[part]) for part in _CONTENTS if part in obj}}

    def all(self, value: Any) -> Any:
        """The value with all its strings hidden; keys stay."""
        if isinstance(value, dict):
            return {key: self.all(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.all(part) for part in value]
        if value in (None, "", MASK):
            return value
        self.hidden = True
        return MASK
