"""`kubectl ctrl completion`: its flags and its help. What it does is in `completing`, loaded when it does it."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

ACTIONS = (
    ("bash", "Print the script for bash."),
    ("zsh", "Print the script for zsh."),
    ("fish", "Print the script for fish."),
    ("pwsh", "Print the script for PowerShell."),
    ("install", "Put the helper where kubectl finds it."),
)

VERB = Verb(
    name="completion",
    usage="completion bash | zsh | fish | pwsh | install [flags]",
    summary="Have the shell complete verbs, flags, controllers and objects.",
    details=(
        "kubectl completes `kubectl ctrl` by itself, in any shell that has its own\n"
        "completion (`kubectl completion --help`): it asks the helper\n"
        "kubectl_complete-ctrl, which pipx, uv and pip put beside kubectl-ctrl, and a\n"
        "checkout has in its bin. Only krew cannot: install does it then. It writes one\n"
        "small file beside kubectl-ctrl, or where you have your own programs.\n"
        "\n"
        "The scripts are for the plain program, kubectl-ctrl.\n"
        "\n"
        "Names come from what is recorded, or else from the cluster where that answers\n"
        "at once."
    ),
    examples=(
        ("Have kubectl complete `kubectl ctrl`, where krew installed it", "completion install"),
        ("Take that back", "completion install --remove"),
        (
            "Complete the plain kubectl-ctrl in bash, or in zsh: a line for ~/.bashrc",
            'eval "$(kubectl-ctrl completion bash)"',
        ),
        ("In fish, and for good", "completion fish > ~/.config/fish/completions/kubectl-ctrl.fish"),
        ("In PowerShell", "completion pwsh | Out-String | Invoke-Expression"),
    ),
    flags=(
        Flag("--dir", value="DIR", default="", help="install: the folder; it should be one of PATH."),
        Flag("--remove", help="install: take the helper away again."),
    ),
    body=later("kubectl_ctrl.cli.verbs.completion.main:run"),
    cluster=False,
    completes=lambda: ACTIONS,
    takes_one=True,
)
