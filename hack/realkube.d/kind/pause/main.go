// Command pause holds a pod's namespaces open: it waits for a stop signal and reaps orphaned
// children meanwhile.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			os.Exit(0)
		}
		for reaped, err := 1, error(nil); reaped > 0 && err == nil; {
			reaped, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
}
