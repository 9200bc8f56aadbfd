// Command defaults reads a list of {"given": object} and adds "stored": the object with its defaults, in its stored
// form. Run it in the module graph of the real cluster:
//
//	copy hack/realkube.d/k8s to a scratch folder and this file into its folder defaults, and there:
//	CGO_ENABLED=0 go build -mod=mod -o golden ./defaults
//	./golden < tests/sandbox/goldens/defaults.json > (a new file, which replaces the old one)
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
)

func main() {
	var cases []map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	for _, one := range cases {
		given, _ := json.Marshal(one["given"])
		obj, gvk, err := legacyscheme.Codecs.UniversalDecoder().Decode(given, nil, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, string(given), err)
			os.Exit(1)
		}
		one["stored"] = json.RawMessage(stored(obj, gvk.GroupVersion()))
	}
	lines := make([]string, len(cases))
	for i, one := range cases {
		text, _ := json.Marshal(one)
		lines[i] = string(text)
	}
	fmt.Println("[\n" + strings.Join(lines, ",\n") + "\n]")
}

// stored: the JSON of the object after its way through the store, which has no empty lists.
func stored(obj runtime.Object, version schema.GroupVersion) []byte {
	info, _ := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	store := legacyscheme.Codecs.CodecForVersions(info.Serializer, info.Serializer, version, runtime.InternalGroupVersioner)
	bytes, err := runtime.Encode(store, obj)
	if err == nil {
		obj, err = runtime.Decode(store, bytes)
	}
	if err != nil {
		panic(err)
	}
	text, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(version), obj)
	if err != nil {
		panic(err)
	}
	return []byte(strings.TrimSpace(string(text)))
}
