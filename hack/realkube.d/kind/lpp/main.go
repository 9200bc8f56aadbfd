// Command lpp binds claims of the provisioner rancher.io/local-path, which is kind's storage
// class, to a folder on the node that the scheduler picked. The folder stays when a claim goes.
package main

import (
	"context"
	"log"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	provisioner   = "rancher.io/local-path"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	folder        = "/var/local-path-provisioner/"
)

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	for ; ; time.Sleep(2 * time.Second) {
		ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
		if err := provide(ctx, client); err != nil {
			log.Print(err)
		}
		if err := reclaim(ctx, client); err != nil {
			log.Print(err)
		}
		cancel()
	}
}

// provide makes a volume for every claim that waits for one of ours.
func provide(ctx context.Context, client kubernetes.Interface) error {
	claims, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !waits(claim) {
			continue
		}
		_, err := client.CoreV1().PersistentVolumes().Create(ctx, volume(claim), meta.CreateOptions{})
		if err != nil && !errors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func waits(claim *core.PersistentVolumeClaim) bool {
	return claim.Status.Phase == core.ClaimPending && claim.Spec.VolumeName == "" &&
		claim.Annotations["volume.kubernetes.io/selected-node"] != "" &&
		claim.Annotations["volume.kubernetes.io/storage-provisioner"] == provisioner
}

func volume(claim *core.PersistentVolumeClaim) *core.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	made := core.HostPathDirectoryOrCreate
	path := folder + name + "_" + claim.Namespace + "_" + claim.Name
	size := claim.Spec.Resources.Requests[core.ResourceStorage]
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisioner}},
		Spec: core.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: core.PersistentVolumeReclaimDelete,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              *claim.Spec.StorageClassName,
			Capacity:                      core.ResourceList{core.ResourceStorage: size},
			ClaimRef: &core.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: core.PersistentVolumeSource{
				HostPath: &core.HostPathVolumeSource{Path: path, Type: &made},
			},
			NodeAffinity: only(claim.Annotations["volume.kubernetes.io/selected-node"]),
		},
	}
}

// only is the affinity of what lies on one node.
func only(node string) *core.VolumeNodeAffinity {
	here := core.NodeSelectorRequirement{
		Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{node},
	}
	term := core.NodeSelectorTerm{MatchExpressions: []core.NodeSelectorRequirement{here}}
	return &core.VolumeNodeAffinity{Required: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{term}}}
}

// reclaim removes the volumes of ours whose claim has gone.
func reclaim(ctx context.Context, client kubernetes.Interface) error {
	volumes, err := client.CoreV1().PersistentVolumes().List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for _, volume := range volumes.Items {
		if volume.Status.Phase != core.VolumeReleased || volume.Annotations[provisionedBy] != provisioner {
			continue
		}
		err := client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, meta.DeleteOptions{})
		if err != nil && !errors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
