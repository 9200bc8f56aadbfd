// Command defaults prints facts about the built-in types that Kubernetes has in Go code alone. Run it in the module
// graph of the real cluster:
//
//	copy hack/realkube.d/k8s to a scratch folder and this file into its folder defaults, and there:
//	CGO_ENABLED=0 go build -mod=mod -o facts ./defaults
//	./facts types | xz -9e > kubectl_ctrl/sandbox/kinds/data/types.json.xz
//	./facts golden < tests/sandbox/goldens/defaults.json > (a new file, which replaces the old one)
//
// types: the fields of every struct below a v1 kind, with the form of each in JSON.
// golden: reads a list of {"given": object} and adds "stored": the object with its defaults, in its stored form.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
)

// scalars have a form of their own in JSON.
var scalars = map[reflect.Type]string{
	reflect.TypeOf(resource.Quantity{}):    "quantity",
	reflect.TypeOf(metav1.Time{}):          "time",
	reflect.TypeOf(metav1.MicroTime{}):     "microtime",
	reflect.TypeOf(metav1.Duration{}):      "duration",
	reflect.TypeOf(metav1.FieldsV1{}):      "any",
	reflect.TypeOf(intstr.IntOrString{}):   "intstr",
	reflect.TypeOf(runtime.RawExtension{}): "any",
}

var types = map[string]map[string]string{}

func main() {
	switch os.Args[1] {
	case "types":
		printTypes()
	case "golden":
		printGolden()
	}
}

func printTypes() {
	kinds := map[string]string{}
	for gvk, goType := range legacyscheme.Scheme.AllKnownTypes() {
		_, isObject := goType.FieldByName("ObjectMeta")
		if !isObject || strings.HasPrefix(gvk.Version, "__") || strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") {
			continue
		}
		kinds[gvk.GroupVersion().String()+"/"+gvk.Kind] = form(goType)
	}
	write(map[string]any{"kinds": kinds, "types": types})
}

// form: `[` a list, `{` a map, then a scalar or the name of a struct.
func form(goType reflect.Type) string {
	if name, found := scalars[goType]; found {
		return name
	}
	switch goType.Kind() {
	case reflect.Pointer:
		return form(goType.Elem())
	case reflect.Slice:
		if goType.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[" + form(goType.Elem())
	case reflect.Map:
		return "{" + form(goType.Elem())
	case reflect.Struct:
		return structName(goType)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Float64, reflect.Float32:
		return "float"
	case reflect.Interface:
		return "any"
	}
	return "int"
}

func structName(goType reflect.Type) string {
	parts := strings.Split(goType.PkgPath(), "/")
	name := parts[len(parts)-2] + "/" + parts[len(parts)-1] + "." + goType.Name()
	name = strings.ReplaceAll(name, "/v1.", ".")
	if types[name] == nil {
		types[name] = map[string]string{}
		addFields(types[name], goType)
	}
	return name
}

// addFields: a field is `!` if it is always in the JSON, `*` if its zero value differs from absence.
func addFields(fields map[string]string, goType reflect.Type) {
	for i := range goType.NumField() {
		field := goType.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if field.Anonymous && tag[0] == "" {
			addFields(fields, field.Type)
			continue
		}
		if tag[0] == "" || tag[0] == "-" {
			continue
		}
		options := "," + strings.Join(tag[1:], ",") + ","
		isPlain := field.Type.Kind() == reflect.Struct
		always := !strings.Contains(options, ",omitempty,") || isPlain
		if strings.Contains(options, ",omitzero,") {
			always = false
		}
		mark := ""
		if always {
			mark = "!"
		}
		if field.Type.Kind() == reflect.Pointer {
			mark += "*"
		}
		fields[tag[0]] = mark + form(field.Type)
	}
}

func printGolden() {
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

func write(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
