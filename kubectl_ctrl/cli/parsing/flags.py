"""Flags that more than one verb takes: kubectl's own 21, and those of kubectl ctrl."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag

KUBECTL_FLAGS = (
    Flag(
        "--as",
        "as_user",
        value="USER",
        default="",
        help="Username to impersonate for the operation: a user or a service account.",
    ),
    Flag("--as-group", value="GROUP", multiple=True, help="Group to impersonate. Can be repeated."),
    Flag("--as-uid", value="UID", default="", help="UID to impersonate for the operation."),
    Flag("--as-user-extra", value="KEY=VALUE", multiple=True, help="User extras to impersonate. Can be repeated."),
    Flag("--cache-dir", value="DIR", default="", help="Default cache directory."),
    Flag(
        "--certificate-authority", value="FILE", default="", help="Path to a cert file for the certificate authority."
    ),
    Flag("--client-certificate", value="FILE", default="", help="Path to a client certificate file for TLS."),
    Flag("--client-key", value="FILE", default="", help="Path to a client key file for TLS."),
    Flag("--cluster", value="NAME", default="", help="The name of the kubeconfig cluster to use."),
    Flag("--context", value="NAME", default="", help="The name of the kubeconfig context to use."),
    Flag("--disable-compression", help="Opt out of response compression for all requests to the server."),
    Flag(
        "--insecure-skip-tls-verify",
        help="Do not check the server's certificate. This makes your connections insecure.",
    ),
    Flag("--kubeconfig", value="FILE", default="", help="Path to the kubeconfig file to use for this call."),
    Flag(
        "-n", "--namespace", value="NAME", default="", help="The namespace to use; the context's namespace by default."
    ),
    Flag("--password", value="PASSWORD", default="", help="Password for basic authentication to the API server."),
    Flag(
        "--request-timeout",
        value="DURATION",
        default="0",
        help="Timeout of a single server request; 0 means the default timeout.",
    ),
    Flag("-s", "--server", value="URL", default="", help="The address and port of the Kubernetes API server."),
    Flag("--tls-server-name", value="NAME", default="", help="Server name to check the server's certificate against."),
    Flag("--token", value="TOKEN", default="", help="Bearer token for authentication to the API server."),
    Flag("--user", value="NAME", default="", help="The name of the kubeconfig user to use."),
    Flag("--username", value="USER", default="", help="Username for basic authentication to the API server."),
)

COMMON_FLAGS = (
    Flag(
        "--color",
        value="WHEN",
        default="auto",
        choices=("auto", "always", "never"),
        help="auto, always or never. auto follows kubectl, and honors NO_COLOR.",
    ),
    Flag("-h", "--help", help="Show this help."),
    Flag(
        "-v",
        "--v",
        "verbosity",
        value="LEVEL",
        type=int,
        default=0,
        help="Log level: 4 logs every call, 6 adds tracebacks.",
    ),
)

GLOBAL_FLAGS = (*COMMON_FLAGS, *KUBECTL_FLAGS)

# For verbs that pass the guard.
ALLOW_CONTEXT = Flag(
    "--allow-context",
    value="NAME",
    default="",
    help="Permit changes to a cluster that is not local. Must equal the name of the context, or the "
    "server's address if that is not the context's own.",
)

# For verbs that run a reconciler.
ATTEMPT_TIMEOUT = Flag(
    "--attempt-timeout", value="DURATION", type=DURATION, default="60s", help="Timeout of a single reconcile."
)

# For verbs that print text, or one document.
DOCUMENT = Flag(
    "-o",
    "--output",
    value="FORMAT",
    default="",
    choices=("text", "json", "yaml"),
    help="Output format: json or yaml; text by default.",
)

# For verbs that handle the scaler's annotations.
ANNOTATION_PREFIX = Flag(
    "--annotation-prefix",
    value="PREFIX",
    default="",
    help="For scaler: the prefix of its annotations, instead of ars.44smkn.github.io/.",
)

# For verbs that read the recording.
UTC = Flag("--utc", help="Show times in UTC instead of local time.")
UID = Flag("--uid", value="UID", default="", help="The object with this UID, if several objects have had that name.")
CONTROLLER = Flag("--controller", value="NAME", default="", help="Only the reconciles of this controller.")
OFFLINE = Flag("--offline", help="Do not query the cluster, even if nothing is recorded.")
LIVE = Flag("--live", help="Also query the cluster, for at most two seconds.")
# For verbs that read a recording: its file, and the cluster.
LOOKING_BACK = (
    Flag("--from", value="FILE", default="", help="The recording to read, instead of the user's own."),
    Flag(
        "--recorded-cluster",
        value="NAME",
        default="",
        help="The recorded cluster to use, by context name or UID; it need not exist any more.",
    ),
)

TEMPLATES = ("jsonpath=", "jsonpath-as-json=", "jsonpath-file=", "custom-columns=", "custom-columns-file=")
# For verbs that list things; cli/output/answers creates a Printer from them.
LISTED = (
    Flag("--no-headers", help="Do not print headers in tables and custom columns."),
    Flag(
        "-o",
        "--output",
        value="FORMAT",
        default="",
        choices=("wide", "name", "json", "yaml", *TEMPLATES),
        help="Output format: wide, name, json, yaml, or as in kubectl jsonpath=..., jsonpath-as-json=..., "
        "jsonpath-file=..., custom-columns=..., custom-columns-file=... A table by default.",
    ),
    Flag("--sort-by", value="PATH", default="", help="Sort the list by the field at this path, for example .name."),
)

# For verbs that work on one managed cluster, and also take its name as an argument.
NAME = Flag("--name", value="NAME", default="", help="The name of the cluster, if it is not given as an argument.")

# For verbs that print progress.
PROGRESS = (
    Flag(
        "--progress",
        value="FORM",
        default="auto",
        choices=("auto", "plain", "json", "none"),
        help="Format of the progress on stderr: auto (a spinner on a terminal, otherwise plain), plain, json or none.",
    ),
    Flag("-q", "--quiet", help="Print only the result and errors."),
)

# For verbs that create a cluster.
MAKING = (
    Flag(
        "--bin-dir",
        value="DIR",
        default="",
        help="kwok: a folder with kwokctl, kwok, kube-apiserver, kube-controller-manager, kube-scheduler, "
        "etcd and kubectl. Nothing is downloaded then.",
    ),
    Flag("--config", value="FILE", default="", help="The configuration file of the provider, kind or kwokctl."),
    Flag("--image", value="IMAGE", default="", help="kind: the image of the nodes."),
    Flag("--keep-on-failure", help="Keep the parts of a cluster that could not be created, to examine them."),
    Flag("--nodes", value="N", type=int, default=None, help="Number of nodes; the provider's default if not given."),
    Flag("--offline", help="Download nothing."),
    Flag(
        "--provider",
        value="PROVIDER",
        default="auto",
        choices=("auto", "kind", "kwok", "sandbox"),
        help="auto, kind, kwok or sandbox. auto selects the provider of an existing cluster of that name, or else the "
        "first of kind, kwok and sandbox that works here.",
    ),
    Flag("--use", help="Make the cluster's context the current one in your kubeconfig; down reverts this."),
    Flag(
        "--wait",
        value="DURATION",
        type=DURATION,
        default="3m",
        help="How long to wait for the nodes to be ready. Exit code 124 on timeout.",
    ),
)
