from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.masking import (
    LAST_APPLIED,
    MASK,
    is_secret_key,
    masked,
    masked_difference,
    masked_text,
    masked_value,
    may_hold_secrets,
)
from kubectl_ctrl.model.resources import SECRETS

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "key",
    [
        *("password", "DB_PASSWORD", "passwd", "token", "accessToken", "bearerToken", "clientSecret", "secret"),
        *("privateKey", "private-key", "AWS_SECRET_ACCESS_KEY", "api_key", "Authorization", "tls.key", "id_rsa"),
        *("OLD_PASS", "oldPass", "old_pw", "OLD_PWD"),
        *("SMTP_PASS", "pass", "dbPass", "db-pass", "MYSQL_PWD", "dbPwd", "pwd", "ROOT_PW", "PGPASSWORD"),
        *(
            "password2",
            "PASSWORD_2",
            "token1",
            "SMTP_PASS2",
            "passwords",
            "apiTokens",
            "API_TOKENS",
            "tokens",
            "apiKeys",
        ),
    ],
)
def test_keys_of_secrets_are_telling(key: str) -> None:
    assert is_secret_key(key)
    for part in ({key: "canary"}, {key: ["canary"]}, {"name": key, "value": "canary"}):
        document = json.dumps([part]).encode()
        assert may_hold_secrets(document)
        assert b"canary" not in json.dumps(masked_value(json.loads(document))).encode()


@pytest.mark.parametrize(
    "key",
    [
        *("secretName", "secretRef", "tokenSecretRef", "passwordSecretRef", "tokenExpirationSeconds", "key", "keys"),
        *("imagePullSecrets", "secretKeyRef", "privateKeyPath", "name", "topologyKey", "monkey"),
        *("passthrough", "bypass", "byPass", "BYPASS", "compass", "passes", "passive", "multiPass", "passwordRef"),
        *("PWD", "OLDPWD", "tokenizer", "tokenReview", "maxTokens", "MAX_TOKENS", "tokensPerMinute"),
        *("keyRef", "publicKeys", "secrets", "secretsStore", "passwordPolicy", "passportId", "firstPass"),
    ],
)
def test_names_and_references_are_not(key: str) -> None:
    assert not is_secret_key(key)


def test_a_secret_keeps_the_names_of_its_entries() -> None:
    data = {"user": base64.b64encode(b"canary").decode()}
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}, "data": data, "stringData": {"x": "y"}}
    assert masked(secret) == ({**secret, "data": {"user": MASK}, "stringData": {"x": MASK}}, True)
    bare = {"metadata": {"name": "a"}, "data": data}
    assert masked(bare, SECRETS) == ({**bare, "data": {"user": MASK}}, True)
    assert masked(bare) == (bare, False)


def test_what_is_hidden_elsewhere_goes_by_its_key_and_the_copy_of_apply_is_dropped() -> None:
    variables = [{"name": "DB_PASSWORD", "value": "x"}, {"name": "HOST", "value": "y"}]
    spec: dict[str, Any] = {
        "password": "x",
        "secretName": "db",
        "env": variables,
        "token": {"name": "z"},
        "automountToken": True,
    }
    obj: dict[str, Any] = {
        "metadata": {"annotations": {LAST_APPLIED: json.dumps({"spec": spec}), "a": "b"}},
        "spec": spec,
    }
    shown, hidden = masked(obj)
    assert hidden
    assert shown["metadata"] == {"annotations": {"a": "b"}}
    hidden_variables = [{"name": "DB_PASSWORD", "value": MASK}, {"name": "HOST", "value": "y"}]
    assert shown["spec"] == {**spec, "password": MASK, "env": hidden_variables}
    assert obj["spec"]["password"] == "x", "what was given stays as it is"


def test_what_holds_nothing_is_given_back_itself() -> None:
    obj: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"list": [{"name": "x", "value": "y"}]}}
    assert masked(obj)[0] is obj


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"cannot use {JWT} there", f"cannot use {MASK} there"),
        ("Authorization: Bearer abcdefgh1234 refused", f"Authorization: Bearer {MASK} refused"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", MASK),
        (f"password=x{JWT}.more Bearer x{JWT}/more", f"password={MASK} Bearer {MASK}"),
        ("https://user:pass@host/path", f"https://{MASK}@host/path"),
        ("redis://:pass@host/0", f"redis://{MASK}@host/0"),
        ("cannot reach root:s3cr3t@tcp(db:3306)/app?tls=true", f"cannot reach {MASK}@tcp(db:3306)/app?tls=true"),
        ("root:p@ss/w@unix(/run/db.sock)/app", f"{MASK}@unix(/run/db.sock)/app"),
        ("--dsn=root:s3cr3t@tcp(db:3306)/app", f"--dsn={MASK}@tcp(db:3306)/app"),
        (f"root:{'x' * 2000}@(db)/ at 12:30", f"{MASK}@(db)/ at 12:30"),
        ("@tcp(db)/a:b root@tcp(db)/ root:@tcp(db)/", "@tcp(db)/a:b root@tcp(db)/ root:@tcp(db)/"),
        ("host=db user=app password=s3cr3t dbname=app", f"host=db user=app password={MASK} dbname=app"),
        ("Server=db;User Id=app;Password=s3cr3t;", f"Server=db;User Id=app;Password={MASK};"),
        ("--password=$(DB_PASSWORD) OLDPWD=/a PWD=/b", "--password=$(DB_PASSWORD) OLDPWD=/a PWD=/b"),
        ("image: registry:5000/app:v1@sha256:abc at 12:30:01", "image: registry:5000/app:v1@sha256:abc at 12:30:01"),
        (
            "mail me@example.com about https://example.com:8443/x",
            "mail me@example.com about https://example.com:8443/x",
        ),
    ],
)
def test_tokens_and_keys_are_known_by_their_form(text: str, shown: str) -> None:
    assert masked_text(text) == shown
    assert masked({"note": text})[0] == {"note": shown}


# Anybody who can write an annotation chooses such a text. Work that grows with the square of it would take hours here.
_MANY = 200_000


@pytest.mark.parametrize(
    "text",
    [
        "a:" * _MANY + "@",
        ",".join(f"k{n}:v{n}" for n in range(_MANY)) + "@",
        "@t(h)/" + "a:" * _MANY,
        "a" * _MANY + "@",
        "a:" + "@(" * _MANY,
        "a:" + "@t(h)" * _MANY,
        "eyJ" * _MANY,
        "eyJ" * _MANY + ".a.",
        "eyJ." * _MANY,
        "-----BEGIN " * _MANY,
        "-----BEGIN " + "PRIVATE KEY" * _MANY,
        "://a:" * _MANY + "@",
        "password=$(" * _MANY,
    ],
    ids=lambda text: f"{text[:12]}...{text[-3:]}",
)
def test_the_work_grows_with_the_length_of_a_text_alone(text: str) -> None:
    assert MASK not in masked_text(text)


@pytest.mark.parametrize("path", ["a" + "[1]" * _MANY + "x", "a" + '["' * _MANY + "]"], ids=["positions", "quotes"])
def test_the_work_grows_with_the_length_of_a_path_alone(path: str) -> None:
    difference = Difference(path=path, old=ABSENT, new="b")
    assert masked_difference(difference) is difference


@pytest.mark.parametrize(
    ("path", "hides"),
    [
        ("spec.password", True),
        ("spec.apiTokens[0]", True),
        ("spec.apiTokens[12][3]", True),
        ("spec.args[0]", False),
        ('data["db.password"]', True),
        ('data["tls.key"]', True),
        ("spec.containers[name=a].env[name=DB_PASSWORD].value", True),
        (f'metadata.annotations["{LAST_APPLIED}"]', True),
        ("spec.containers[name=a].env[name=HOST].value", False),
        ("spec.tolerations[key=a].key", False),
        ("spec.volumes[name=secret]", False),
        ("spec.secretName", False),
    ],
)
def test_differences_go_by_the_last_name_of_their_path(path: str, *, hides: bool) -> None:
    shown = masked_difference(Difference(path=path, old=ABSENT, new="canary"))
    assert shown == Difference(path=path, old=ABSENT, new=HIDDEN if hides else "canary")


def test_differences_hide_inside_their_values() -> None:
    shown = masked_difference(Difference(path="spec", old={"token": "canary", "a": 1}, new=ABSENT))
    assert shown.old == {"token": MASK, "a": 1}


def test_a_secret_is_known_at_any_depth() -> None:
    secret = {"kind": "Secret", "apiVersion": "v1", "data": {"x": "canary"}}
    assert masked_value([{"items": [secret]}]) == [{"items": [{**secret, "data": {"x": MASK}}]}]


def test_json_patches_go_by_their_path_and_those_of_secrets_lose_all_values() -> None:
    patch = [
        {"op": "replace", "path": "/spec/smtpPass", "value": "canary"},
        {"op": "add", "path": "/spec/size", "value": "3"},
        {"op": "remove", "path": "/spec/x"},
    ]
    assert masked(patch) == ([{**patch[0], "value": MASK}, *patch[1:]], True)
    assert masked(patch, SECRETS)[0] == [{**patch[0], "value": MASK}, {**patch[1], "value": MASK}, patch[2]]
    assert masked(patch[1:]) == (patch[1:], False)


@pytest.mark.parametrize("body", ["text", None, 4711, True, [1], ["value"], [None, {"op": "remove"}], [["value"]]])
def test_a_body_that_is_no_secret_is_treated_like_any_other(body: Any) -> None:
    assert masked(body, SECRETS) == (body, False)
    assert masked(JWT, SECRETS) == (MASK, True)


def test_lists_under_a_telling_key_lose_their_texts_alone() -> None:
    shown = masked_difference(Difference(path="spec.apiTokens", old=["canary", {"name": "a"}], new=ABSENT))
    assert shown.old == [MASK, {"name": "a"}]
