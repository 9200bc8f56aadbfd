// Writes facts of Kubernetes' Go types as JSON, for kubectl_ctrl/sandbox/kinds/data. Run in hack/realkube.d/k8s:
//
//	go run ../../update.d/encoding/main.go columns | xz -9e > columns.json.xz     the columns of every built-in kind
//	go run ../../update.d/encoding/main.go messages | xz -9e > messages.json.xz   the fields of every protobuf message
//	go run ../../update.d/encoding/main.go tables                                 the Tables of the objects on standard input
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"
)

func main() {
	run := map[string]func() any{"columns": columns, "messages": messages, "tables": tables}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	must(out.Encode(run[os.Args[1]]()))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// recorder keeps the columns that the print handlers declare.
type recorder map[string][][]any

func (found recorder) TableHandler(columns []metav1.TableColumnDefinition, print any) error {
	object := reflect.New(reflect.TypeOf(print).In(0).Elem()).Interface().(runtime.Object)
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil // Status is of no group
	}
	for _, kind := range kinds {
		if strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		rows := [][]any{}
		for _, column := range columns {
			rows = append(rows, []any{column.Name, column.Type, column.Format, column.Description, column.Priority})
		}
		found[strings.TrimSuffix(kind.Kind+"."+kind.Group, ".")] = rows
	}
	return nil
}

func columns() any {
	found := recorder{}
	internalversion.AddHandlers(found)
	// Kinds without handlers, and the one of another component.
	words := metav1.ObjectMeta{}.SwaggerDoc()
	name := []any{"Name", "string", "name", words["name"], 0}
	found[""] = [][]any{name, {"Created At", "date", "", words["creationTimestamp"], 0}}
	found["APIService.apiregistration.k8s.io"] = [][]any{
		name,
		{"Service", "string", "", "The reference to the service that hosts this API endpoint.", 0},
		{"Available", "string", "", "Whether this service is available.", 0},
		{"Age", "string", "", words["creationTimestamp"], 0},
	}
	return found
}

// tables: the time, and for each object its cells and conditions, or an error.
func tables() any {
	generator := printers.NewTableGenerator().With(internalversion.AddHandlers)
	decoder := json.NewDecoder(os.Stdin)
	shown := []any{}
	for decoder.More() {
		var raw json.RawMessage
		must(decoder.Decode(&raw))
		table, err := tableOf(generator, raw)
		if err != nil {
			shown = append(shown, err.Error())
			continue
		}
		shown = append(shown, []any{table.Rows[0].Cells, table.Rows[0].Conditions})
	}
	return map[string]any{"now": float64(time.Now().UnixMilli()) / 1000, "rows": shown}
}

func tableOf(generator *printers.HumanReadableGenerator, raw []byte) (*metav1.Table, error) {
	external, kind, err := legacyscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	internal := schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal}
	object, err := legacyscheme.Scheme.ConvertToVersion(external, internal)
	if err != nil {
		return nil, err
	}
	return generator.GenerateTable(object, printers.GenerateOptions{Wide: true})
}

// The types that have a JSON form of their own, and the code for each in the table.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                                  "t",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                             "u",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                              "R",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                               "R",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                              "Q",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                            "I",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                              "R",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1.JSON":                         "R",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":             "A",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1.JSONSchemaPropsOrBool":        "A",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":            "A",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1.JSONSchemaPropsOrArray":       "A",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray":      "A",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1.JSONSchemaPropsOrStringArray": "A",
}

// messages: each field is `number json-name code`, with `?` after the code of one that is omitted when empty.
// Codes: s string, b bool, i integer, f double, B bytes, L list of strings, mN message N, [X] list, {X} map of X by strings,
// A one of the message's fields alone, and those above. A field without a name adds the fields of its message to the object.
type walker struct {
	seen map[reflect.Type]int
	list []string
}

func messages() any {
	walk := &walker{seen: map[reflect.Type]int{}}
	kinds := map[string]int{}
	for _, scheme := range []*runtime.Scheme{legacyscheme.Scheme, apiextensions.Scheme, aggregator.Scheme} {
		types := scheme.AllKnownTypes()
		sorted := []schema.GroupVersionKind{}
		for kind := range types {
			sorted = append(sorted, kind)
		}
		sort.Slice(sorted, func(i, j int) bool { return sorted[i].String() < sorted[j].String() })
		for _, kind := range sorted {
			if kind.Version == runtime.APIVersionInternal || strings.HasSuffix(kind.Kind, "List") {
				continue
			}
			name := kind.GroupVersion().String() + " " + kind.Kind
			if strings.HasPrefix(types[kind].PkgPath(), "k8s.io/apimachinery/") {
				name = kind.Kind // the same in every group
			}
			kinds[name] = walk.message(types[kind])
		}
	}
	return map[string]any{"kinds": kinds, "messages": walk.list}
}

func (walk *walker) message(of reflect.Type) int {
	if at, known := walk.seen[of]; known {
		return at
	}
	at := len(walk.list)
	walk.seen[of] = at
	walk.list = append(walk.list, "")
	fields := []string{}
	for i := range of.NumField() {
		if text := walk.field(of.Field(i)); text != "" {
			fields = append(fields, text)
		}
	}
	walk.list[at] = strings.Join(fields, ";")
	return at
}

func (walk *walker) field(field reflect.StructField) string {
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return ""
	}
	names := strings.Split(field.Tag.Get("json"), ",")
	name := strings.Trim(names[0], "-")
	if name == "" && !field.Anonymous {
		name = strings.TrimPrefix(parts[len(parts)-1], "name=")
	}
	code := walk.code(field.Type)
	if field.Type.Kind() != reflect.Pointer && len(names) > 1 && strings.Contains(field.Tag.Get("json"), ",omit") {
		if field.Type.Kind() != reflect.Struct || strings.Contains(field.Tag.Get("json"), "omitzero") {
			code += "?"
		}
	}
	return fmt.Sprintf("%s %s %s", parts[1], name, code)
}

func (walk *walker) code(of reflect.Type) string {
	if of.Kind() == reflect.Pointer {
		return walk.code(of.Elem())
	}
	name := of.PkgPath() + "." + of.Name()
	if code := special[name]; code == "A" {
		return fmt.Sprintf("A%d", walk.message(of))
	} else if code != "" {
		return code
	}
	if _, alone := reflect.PointerTo(of).MethodByName("MarshalTo"); alone && of.Kind() == reflect.Slice {
		return "L"
	}
	switch of.Kind() {
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "B"
		}
		return "[" + walk.code(of.Elem()) + "]"
	case reflect.Map:
		return "{" + walk.code(of.Elem()) + "}"
	case reflect.Struct:
		return fmt.Sprintf("m%d", walk.message(of))
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Float64, reflect.Float32:
		return "f"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Uint8:
		return "i"
	}
	panic("no code for " + name)
}
