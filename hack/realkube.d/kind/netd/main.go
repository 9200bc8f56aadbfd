// Command netd stands in for kindnetd: on every node it writes the CNI configuration out of
// Node.spec.podCIDR, routes the other nodes' pod networks through those nodes, and
// masquerades what leaves the pod network. IPv4 only, no NetworkPolicy.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	configFile = "/etc/cni/net.d/10-kindnet.conflist"
	chain      = "REALKUBE-MASQ"
)

const configuration = `{
  "cniVersion": "0.3.1",
  "name": "kindnet",
  "plugins": [
    {"type": "ptp", "ipMasq": false, "mtu": %d,
     "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
              "routes": [{"dst": "0.0.0.0/0"}],
              "ranges": [[{"subnet": %q}]]}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	// Services do not work yet where there is no network yet: kind says where the API server is.
	if endpoint := os.Getenv("CONTROL_PLANE_ENDPOINT"); endpoint != "" {
		config.Host = "https://" + endpoint
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	for {
		pause := 2 * time.Second
		if err := sync(client, os.Getenv("HOST_IP")); err != nil {
			log.Print(err)
			pause = time.Second
		}
		time.Sleep(pause)
	}
}

func sync(client kubernetes.Interface, here string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	nodes, err := client.CoreV1().Nodes().List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	found := false
	for i := range nodes.Items {
		cidr, address := nodes.Items[i].Spec.PodCIDR, internalIP(&nodes.Items[i])
		if cidr == "" || address == "" {
			continue
		}
		if address == here {
			found = true
			err = configure(cidr)
		} else {
			err = route(cidr, address)
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("the node with address %s has no podCIDR yet", here)
	}
	return masquerade(strings.Split(strings.TrimSpace(os.Getenv("POD_SUBNET")), ","))
}

func internalIP(node *core.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == core.NodeInternalIP && net.ParseIP(address.Address).To4() != nil {
			return address.Address
		}
	}
	return ""
}

func route(cidr, via string) error {
	_, to, err := net.ParseCIDR(cidr)
	if err != nil {
		return err
	}
	if err := netlink.RouteReplace(&netlink.Route{Dst: to, Gw: net.ParseIP(via)}); err != nil {
		return fmt.Errorf("route to %s via %s: %w", to, via, err)
	}
	return nil
}

// configure writes the file at once and only when it changes: containerd reads it again each time.
func configure(cidr string) error {
	mtu := 1500
	if link, err := netlink.LinkByName("eth0"); err == nil {
		mtu = link.Attrs().MTU
	}
	wanted := fmt.Sprintf(configuration, mtu, cidr)
	if have, err := os.ReadFile(configFile); err == nil && string(have) == wanted {
		return nil
	}
	if err := os.WriteFile(configFile+".tmp", []byte(wanted), 0o644); err != nil {
		return err
	}
	return os.Rename(configFile+".tmp", configFile)
}

// masquerade hides pods from whatever is neither a pod nor this node.
func masquerade(podNetworks []string) error {
	_ = iptables("-N", chain) // there already: fine
	var rules [][]string
	for _, network := range podNetworks {
		rules = append(rules, []string{chain, "-d", network, "-j", "RETURN"})
	}
	rules = append(rules,
		[]string{chain, "-j", "MASQUERADE"},
		[]string{"POSTROUTING", "-m", "addrtype", "!", "--dst-type", "LOCAL", "-j", chain})
	for _, rule := range rules {
		if iptables(append([]string{"-C"}, rule...)...) == nil {
			continue
		}
		if err := iptables(append([]string{"-A"}, rule...)...); err != nil {
			return err
		}
	}
	return nil
}

func iptables(args ...string) error {
	out, err := exec.Command("iptables", append([]string{"-w", "5", "-t", "nat"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("iptables %v: %w: %s", args, err, out)
	}
	return nil
}
