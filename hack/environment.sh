# Python environments of a checkout: sourced by bin/kubectl-ctrl and by the scripts beside this file. POSIX sh.
#
# An environment is in CACHE/kubectl-ctrl/env/<path of the checkout>/<keys of its lock files>-<interpreter>/, and is complete when
# it contains the file `ready`. The first line of a lock file is its key (hack/update writes it, hack/check verifies it), so
# that finding an up-to-date environment starts no process. hack/environment.py creates a missing one.

# error ID SENTENCE TRIED NEXT
error() {
    printf 'error[%s]: %s\ntried: %s\nnext: %s\n' "$@" >&2
    exit 5
}

# provide_environment CHECKOUT LOCK...: sets env to the folder of an environment with these locks, or exits with an error.
provide_environment() { find_environment "$@" || make_environment "$@"; }

# find_environment CHECKOUT LOCK...: sets env, home and key; fails if there is no such environment.
find_environment() {
    home=$1
    shift
    key=
    for lock in "$@"; do
        line=
        [ ! -r "$home/$lock" ] || read -r line <"$home/$lock" || :
        case $line in
            '# key: '?*) key=$key${key:++}${line#'# key: '} ;;
            *) error CTRL-SETUP-CHECKOUT "This checkout is incomplete." "$home/$lock" "Clone the repository again." ;;
        esac
    done
    case ${XDG_CACHE_HOME-} in
        /*) home=$XDG_CACHE_HOME/kubectl-ctrl/env$home ;;
        *)
            case ${HOME-} in
                /*) home=$HOME/.cache/kubectl-ctrl/env$home ;;
                *)
                    error CTRL-SETUP-FOLDER "There is no folder for the Python environment." \
                        "XDG_CACHE_HOME and HOME, neither of which is an absolute path" \
                        "Set HOME, then repeat the command."
                    ;;
            esac
            ;;
    esac
    for env in "$home/$key"-*; do
        # -x follows the link to the interpreter: if an upgrade removed it, the environment is created again.
        [ -f "$env/ready" ] && [ -x "$env/bin/python" ] && return 0
    done
    return 1
}

# make_environment CHECKOUT LOCK...: after find_environment failed; sets env, or exits with an error.
make_environment() {
    find_python
    env=$("$python" -I "$1/hack/environment.py" --home "$home" --key "$key" --uv "$uv" "$@") || exit
}

# find_python: sets python; sets uv to "" if that python can create environments by itself.
find_python() {
    tried=
    uv=
    for name in python3.14 python3.13 python3.12 python3.11 python3; do
        python=$(command -v "$name") || continue
        # A file on PATH may not start: version managers put scripts there for interpreters that are not active.
        if why=$("$python" -I -c "$probe" 2>&1 </dev/null); then return; fi
        case $why in "is "* | "lacks "*) ;; *) why="does not start" ;; esac
        tried="$tried$name ($why), "
    done
    if uv=$(command -v uv); then
        python=$("$uv" python find --no-project --system '>=3.11' 2>/dev/null </dev/null) && return
        echo "kubectl-ctrl: no usable Python found; uv downloads one" >&2
        if "$uv" python install --quiet 3.13 >/dev/null 2>&1 </dev/null; then
            python=$("$uv" python find --no-project --system '>=3.11' 2>/dev/null </dev/null) && return
        fi
        tried="${tried}uv (cannot download a Python), "
    fi
    next="Install Python 3.11 or newer (apt install python3-venv, dnf install python3, brew install python), or uv, and repeat the command."
    case $tried in *'lacks ensurepip'* | *'lacks venv'*) next="Install the venv module of that Python (apt install python3-venv), or uv, and repeat the command." ;; esac
    tried=${tried:-"python3.14 to python3.11, python3 and uv, none of which is on PATH, "}
    error CTRL-SETUP-PYTHON "There is no Python 3.11 or newer that can create environments." "${tried%, }" "$next"
}

probe='
import sys
if sys.version_info < (3, 11):
    sys.exit("is %d.%d" % sys.version_info[:2])
try:
    import ensurepip, sqlite3, ssl, venv, zlib
except ImportError as missing:
    sys.exit("lacks %s" % missing.name)
'
