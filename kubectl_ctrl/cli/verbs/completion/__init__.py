"""`kubectl ctrl completion`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later

ACTIONS = (
    ("bash", "Print the script for bash."),
    ("zsh", "Print the script for zsh."),
    ("fish", "Print the script for fish."),
    ("pwsh", "Print the script for PowerShell."),
    ("install", "Install the helper in a folder where kubectl finds it."),
)

VERB = Verb(
    name="completion",
    usage="completion bash | zsh | fish | pwsh | install [flags]",
    details=(
        "kubectl completes `kubectl ctrl` in any shell that has kubectl's own completion\n"
        "(see `kubectl completion --help`). It calls the helper kubectl_complete-ctrl,\n"
        "which pipx, uv and pip install beside kubectl-ctrl; a checkout has it in bin.\n"
        "krew cannot install it: run `completion install` then. It writes one small file\n"
        "beside kubectl-ctrl, or into your own folder for programs.\n\n"
        "The scripts are for the plain program, kubectl-ctrl.\n\n"
        "Names come from the recording, or from the cluster if it answers at once."
    ),
    examples=(
        ("Install the helper, if kubectl ctrl was installed by krew", "completion install"),
        ("Remove the helper", "completion install --remove"),
        ("Complete kubectl-ctrl in bash or zsh: a line for ~/.bashrc", 'eval "$(kubectl-ctrl completion bash)"'),
        ("Complete it in fish, permanently", "completion fish > ~/.config/fish/completions/kubectl-ctrl.fish"),
        ("Complete it in PowerShell", "completion pwsh | Out-String | Invoke-Expression"),
    ),
    flags=(
        Flag("--dir", value="DIR", default="", help="install: the folder; it should be in PATH."),
        Flag("--remove", help="install: remove the helper."),
    ),
    body=later("kubectl_ctrl.cli.verbs.completion.main:run"),
    cluster=False,
    completes=lambda: ACTIONS,
    takes_one=True,
)
