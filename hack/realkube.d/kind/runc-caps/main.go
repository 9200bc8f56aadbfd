// Command runc-caps is runc on a machine whose capability bounding set is not full. Docker asks
// for every capability that the kernel knows when a container is privileged, and runc then fails
// with "unable to apply caps: operation not permitted". This takes what nobody here can have out of the
// bundle's config.json (create, run) or the process file (exec), and becomes the real runc.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// names is linux/capability.h in the order of its bits.
var names = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO
SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE
AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON
BPF CHECKPOINT_RESTORE`)

func main() {
	args := os.Args[1:]
	for i, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		if !given && i+1 < len(args) {
			value = args[i+1]
		}
		var err error
		switch name {
		case "--bundle", "-b":
			err = rewrite(filepath.Join(value, "config.json"), ofBundle)
		case "--process", "-p":
			err = rewrite(value, ofProcess)
		}
		if err != nil {
			// The real runc says it better if it matters.
			fmt.Fprintln(os.Stderr, "runc-caps:", err)
		}
	}
	for _, runc := range []string{"/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc", "/usr/local/bin/runc"} {
		if err := syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ()); err != syscall.ENOENT {
			fmt.Fprintln(os.Stderr, "runc-caps:", runc, err)
		}
	}
	os.Exit(127)
}

func ofBundle(spec map[string]any) map[string]any {
	process, _ := spec["process"].(map[string]any)
	return ofProcess(process)
}

func ofProcess(process map[string]any) map[string]any {
	capabilities, _ := process["capabilities"].(map[string]any)
	return capabilities
}

func rewrite(file string, capabilities func(map[string]any) map[string]any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var spec map[string]any
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber() // 64-bit limits stay exact
	if err := decoder.Decode(&spec); err != nil {
		return err
	}
	lost := missing()
	sets := capabilities(spec)
	for set, value := range sets {
		list, _ := value.([]any)
		sets[set] = slices.DeleteFunc(list, func(name any) bool { return slices.Contains(lost, name) })
	}
	out, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(file, out, 0o600)
}

// missing is the capabilities outside this process's bounding set.
func missing() (lost []any) {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "CapBnd:")
	hex, _, _ := strings.Cut(rest, "\n")
	bounding, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
	if err != nil {
		return nil
	}
	for bit, name := range names {
		if bounding&(1<<bit) == 0 {
			lost = append(lost, "CAP_"+name)
		}
	}
	return lost
}
