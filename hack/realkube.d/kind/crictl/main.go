// Command crictl is the part of crictl that kind calls inside a node: `inspecti IMAGE...`
// tells what an image is, `images` lists them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const containerd = "unix:///run/containerd/containerd.sock"

func main() {
	if err := run(words(os.Args[1:])); err != nil {
		fmt.Fprintln(os.Stderr, "crictl:", err)
		os.Exit(1)
	}
}

// words is the arguments without flags: none of them changes what comes out.
func words(args []string) (found []string) {
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			found = append(found, arg)
		}
	}
	return found
}

func run(words []string) error {
	conn, err := grpc.NewClient(containerd, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	images := cri.NewImageServiceClient(conn)
	switch {
	case len(words) > 1 && words[0] == "inspecti":
		return inspect(ctx, images, words[1:])
	case len(words) == 1 && words[0] == "images":
		return list(ctx, images)
	}
	return fmt.Errorf("usage: crictl inspecti IMAGE... | images; not %q", words)
}

func inspect(ctx context.Context, images cri.ImageServiceClient, names []string) error {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	for _, name := range names {
		answer, err := images.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
		if err != nil {
			return fmt.Errorf("image status of %q: %w", name, err)
		}
		image := answer.Image
		if image == nil {
			return fmt.Errorf("no such image %q present", name)
		}
		status := map[string]any{
			"id": image.Id, "repoTags": orEmpty(image.RepoTags), "repoDigests": orEmpty(image.RepoDigests),
			"size": fmt.Sprint(image.Size), "username": image.Username, "pinned": image.Pinned,
		}
		if err := out.Encode(map[string]any{"status": status}); err != nil {
			return err
		}
	}
	return nil
}

func list(ctx context.Context, images cri.ImageServiceClient) error {
	answer, err := images.ListImages(ctx, &cri.ListImagesRequest{})
	if err != nil {
		return err
	}
	fmt.Printf("%-70s %-16s %s\n", "IMAGE", "IMAGE ID", "SIZE")
	for _, image := range answer.Images {
		for _, tag := range image.RepoTags {
			fmt.Printf("%-70s %-16.13s %dMB\n", tag, strings.TrimPrefix(image.Id, "sha256:"), image.Size/1_000_000)
		}
	}
	return nil
}

// orEmpty makes `[]` of no strings, where JSON would have `null`.
func orEmpty(strings []string) []string {
	return append([]string{}, strings...)
}
