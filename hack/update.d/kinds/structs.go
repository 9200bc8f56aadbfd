// Prints the JSON form of every struct of Kubernetes' built-in types: which fields are always there, which are pointers,
// and the Go types of fields that OpenAPI does not show. Run by kinds.py, in the module of hack/realkube.d/k8s.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	autoscaling "k8s.io/api/autoscaling/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type shape struct {
	Always   map[string]json.RawMessage `json:"always,omitempty"`
	Pointers []string                   `json:"pointers,omitempty"`
	Types    map[string]string          `json:"types,omitempty"`
}

var shapes = map[string]*shape{}

func main() {
	apiextensions.AddToScheme(scheme.Scheme)
	apiregistration.AddToScheme(scheme.Scheme)
	for _, kind := range scheme.Scheme.AllKnownTypes() {
		walk(kind)
	}
	walk(reflect.TypeOf(autoscaling.Scale{}))
	json.NewEncoder(os.Stdout).Encode(shapes)
}

// The name of a type's schema: k8s.io/api/apps/v1.Deployment is io.k8s.api.apps.v1.Deployment.
func name(kind reflect.Type) string {
	parts := strings.Split(kind.PkgPath(), "/")
	domain := strings.Split(parts[0], ".")
	for i, j := 0, len(domain)-1; i < j; i, j = i+1, j-1 {
		domain[i], domain[j] = domain[j], domain[i]
	}
	return strings.Join(append(append(domain, parts[1:]...), kind.Name()), ".")
}

// A string, number or boolean with a name of its own, or a list or map of them.
func named(kind reflect.Type) bool {
	switch kind.Kind() {
	case reflect.Pointer, reflect.Slice:
		return named(kind.Elem())
	case reflect.Map:
		return named(kind.Key()) || named(kind.Elem())
	}
	return kind.Kind() != reflect.Struct && kind.PkgPath() != ""
}

func walk(kind reflect.Type) {
	switch kind.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		walk(kind.Elem())
	case reflect.Struct:
		if shapes[name(kind)] == nil && strings.Contains(kind.PkgPath(), "k8s.io/") {
			shapes[name(kind)] = &shape{Always: map[string]json.RawMessage{}, Types: map[string]string{}}
			fields(kind, shapes[name(kind)])
		}
	}
}

func fields(kind reflect.Type, into *shape) {
	for i := 0; i < kind.NumField(); i++ {
		field := kind.Field(i)
		label, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if label == "" && field.Anonymous && field.Type.Kind() == reflect.Struct {
			fields(field.Type, into)
		}
		if label == "" || label == "-" || !field.IsExported() {
			continue
		}
		walk(field.Type)
		if named(field.Type) {
			into.Types[label] = strings.TrimPrefix(field.Type.String(), "*")
		}
		zero := reflect.New(field.Type).Elem()
		omitted := strings.Contains(options, "omitzero") || strings.Contains(options, "omitempty") && field.Type.Kind() != reflect.Struct
		if !omitted {
			into.Always[label], _ = json.Marshal(zero.Interface())
		} else if field.Type.Kind() == reflect.Pointer {
			into.Pointers = append(into.Pointers, label)
		}
	}
}
