"""Flags that more than one verb takes: kubectl's own 21, and ours."""

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
    Flag("--as-group", value="GROUP", multiple=True, help="Group to impersonate; may be given several times."),
    Flag("--as-uid", value="UID", default="", help="UID to impersonate for the operation."),
    Flag(
        "--as-user-extra",
        value="KEY=VALUE",
        multiple=True,
        help="User extras to impersonate; may be given several times.",
    ),
    Flag("--cache-dir", value="DIR", default="", help="Default cache directory; kept for kubectl's sake."),
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
    Flag("-n", "--namespace", value="NAME", default="", help="The namespace to work in; the context's when not given."),
    Flag("--password", value="PASSWORD", default="", help="Password for basic authentication to the API server."),
    Flag(
        "--request-timeout",
        value="DURATION",
        default="0",
        help="The longest time for one server request; 0 means our default.",
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
        help="auto, always or never. auto is as kubectl does it; NO_COLOR is honoured.",
    ),
    Flag("-h", "--help", help="Show this help."),
    Flag(
        "-v",
        "--v",
        "verbosity",
        value="LEVEL",
        type=int,
        default=0,
        help="How much to tell: 4 names every call, 6 adds tracebacks.",
    ),
)

GLOBAL_FLAGS = (*COMMON_FLAGS, *KUBECTL_FLAGS)

# Of every verb that passes the guard.
ALLOW_CONTEXT = Flag(
    "--allow-context",
    value="NAME",
    default="",
    help="Permit changes to a cluster that is not local; must equal the name of the context that is used, or the "
    "server's address where that is not the context's own.",
)

# Of every verb that meets the scaler's annotations.
ANNOTATION_PREFIX = Flag(
    "--annotation-prefix",
    value="PREFIX",
    default="",
    help="For scaler: what its annotations begin with, instead of ars.44smkn.github.io/.",
)

# Of every verb that looks back.
UTC = Flag("--utc", help="Show times in UTC rather than in local time.")
UID = Flag(
    "--uid", value="UID", default="", help="The object of that UID, where its name had several one after another."
)
CONTROLLER = Flag("--controller", value="NAME", default="", help="Only what that controller did.")
OFFLINE = Flag("--offline", help="Do not ask the cluster for anything, also where nothing is recorded.")
LIVE = Flag("--live", help="Ask the cluster too, for at most two seconds.")
# Which recording, and which cluster in it.
LOOKING_BACK = (
    Flag("--from", value="FILE", default="", help="The recording to look into, instead of the user's own."),
    Flag(
        "--recorded-cluster",
        value="NAME",
        default="",
        help="The cluster that is meant, by a context's name or a UID as recorded; it need not be there any more.",
    ),
)

TEMPLATES = ("jsonpath=", "jsonpath-as-json=", "jsonpath-file=", "custom-columns=", "custom-columns-file=")
# Of every verb that lists things: what cli/answers makes a Printer of.
LISTED = (
    Flag("--no-headers", help="Leave the line of headers out of a table and of custom columns."),
    Flag(
        "-o",
        "--output",
        value="FORMAT",
        default="",
        choices=("wide", "name", "json", "yaml", *TEMPLATES),
        help="A table when not given; wide, name, json, yaml, and as kubectl has them jsonpath=..., "
        "jsonpath-as-json=..., jsonpath-file=..., custom-columns=..., custom-columns-file=...",
    ),
    Flag("--sort-by", value="PATH", default="", help="Sort what is listed by the field at this path, as in .name."),
)

# Of verbs that mean one cluster of ours, and take its name as a word too.
NAME = Flag("--name", value="NAME", default="", help="The cluster, where no NAME is given as an argument.")

# Of every verb that works in steps.
PROGRESS = (
    Flag(
        "--progress",
        value="FORM",
        default="auto",
        choices=("auto", "plain", "json", "none"),
        help="How steps are told on stderr: auto is a spinner on a terminal and plain elsewhere; plain, json or none.",
    ),
    Flag("-q", "--quiet", help="Say nothing but errors and what was asked for."),
)

# Which cluster of ours is to be made, and what it is to be like.
MAKING = (
    Flag(
        "--bin-dir",
        value="DIR",
        default="",
        help="kwok: a folder with kwokctl, kwok, kube-apiserver, kube-controller-manager, kube-scheduler, etcd and "
        "kubectl; then nothing is downloaded.",
    ),
    Flag(
        "--config", value="FILE", default="", help="A configuration file of the provider's own: kind's, or kwokctl's."
    ),
    Flag("--image", value="IMAGE", default="", help="The image of kind's nodes."),
    Flag("--keep-on-failure", help="Leave what was made when the cluster could not be made, to look into it."),
    Flag("--nodes", value="N", type=int, default=None, help="How many nodes; the provider's choice when not given."),
    Flag("--offline", help="Download nothing."),
    Flag(
        "--provider",
        value="PROVIDER",
        default="auto",
        choices=("auto", "kind", "kwok"),
        help="auto, kind or kwok: auto takes the one that a cluster of that name has, then kind, then kwok.",
    ),
    Flag("--use", help="Make the cluster's context the current one in your kubeconfig; down undoes it."),
    Flag(
        "--wait",
        value="DURATION",
        type=DURATION,
        default="3m",
        help="How long the nodes may take to be ready. Code 124 when the time runs out.",
    ),
)
