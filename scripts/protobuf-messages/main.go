// Command protobuf-messages prints, as JSON, the fields of the messages that typed clients send as protobuf: read by
// reflection from the Go types of Kubernetes, whose struct tags hold the number and the JSON name of each field.
// src/kubernetes/server/http/protobuf.ts says how to read the result.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// Groups at the versions that are served; every kind of theirs that is no list.
var served = []schema.GroupVersion{
	{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "batch", Version: "v1"},
	{Group: "autoscaling", Version: "v1"}, {Group: "autoscaling", Version: "v2"},
	{Group: "coordination.k8s.io", Version: "v1"}, {Group: "discovery.k8s.io", Version: "v1"}, {Group: "events.k8s.io", Version: "v1"},
	{Group: "networking.k8s.io", Version: "v1"}, {Group: "node.k8s.io", Version: "v1"}, {Group: "policy", Version: "v1"}, {Group: "rbac.authorization.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1"}, {Group: "storage.k8s.io", Version: "v1"}, {Group: "resource.k8s.io", Version: "v1"},
	{Group: "authentication.k8s.io", Version: "v1"}, {Group: "authorization.k8s.io", Version: "v1"},
	{Group: "apiextensions.k8s.io", Version: "v1"},
}

var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                  "Time",
	reflect.TypeFor[metav1.MicroTime]():                             "MicroTime",
	reflect.TypeFor[metav1.FieldsV1]():                              "Raw",
	reflect.TypeFor[runtime.RawExtension]():                         "Raw",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "Raw",
	reflect.TypeFor[resource.Quantity]():                            "Quantity",
	reflect.TypeFor[intstr.IntOrString]():                           "IntOrString",
	reflect.TypeFor[authenticationv1.ExtraValue]():                  "Strings",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "SchemaOrArray",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "SchemaOrBool",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "SchemaOrStrings",
}

var messages = map[string]string{}

func main() {
	must(apiextensionsv1.AddToScheme(scheme.Scheme))
	roots := map[string]string{}
	root := func(apiVersion, kind string, object any) {
		roots[strings.TrimSpace(apiVersion+" "+kind)] = message(reflect.TypeOf(object))
	}
	for _, version := range served {
		for kind, of := range scheme.Scheme.KnownTypes(version) {
			if _, ok := of.FieldByName("ObjectMeta"); ok && !strings.HasSuffix(kind, "List") {
				root(version.String(), kind, reflect.New(of).Elem().Interface())
			}
		}
	}
	root("policy/v1", "Eviction", policyv1.Eviction{})
	root("", "DeleteOptions", metav1.DeleteOptions{})
	fmt.Println("{")
	fmt.Println(`"kinds": {`)
	printSorted(roots, func(value string) string { return fmt.Sprintf("%q", value) })
	fmt.Println("},")
	fmt.Println(`"messages": {`)
	printSorted(messages, func(value string) string { return value })
	fmt.Println("}\n}")
}

func printSorted(table map[string]string, show func(string) string) {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Printf("%q: %s%s\n", name, show(table[name]), comma)
	}
}

func message(of reflect.Type) string {
	// Two elements of the path tell the packages apart: core/v1, apps/v1, meta/v1.
	path := strings.Split(of.PkgPath(), "/")
	name := strings.Join(path[len(path)-2:], "/") + "." + of.Name()
	if _, ok := messages[name]; ok {
		return name
	}
	messages[name] = ""
	var fields []string
	for i := range of.NumField() {
		field := of.Field(i)
		wire := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(wire) < 2 {
			continue
		}
		json := strings.Split(field.Tag.Get("json"), ",")
		mark := ""
		switch {
		case json[0] == "":
			// Inlined: its fields stand in the message around it. ObjectMeta and TypeMeta are named.
			mark = "^"
		case len(json) > 1 && field.Type.Kind() != reflect.Pointer:
			// Its zero value is absent in JSON.
			mark = "?"
		}
		fields = append(fields, fmt.Sprintf("%q:[%q,%q]", wire[1], json[0], mark+typeName(field.Type)))
	}
	messages[name] = "{" + strings.Join(fields, ",") + "}"
	return name
}

func typeName(of reflect.Type) string {
	if of.Kind() == reflect.Pointer {
		return typeName(of.Elem())
	}
	if name, ok := special[of]; ok {
		if strings.HasPrefix(name, "Schema") {
			message(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		}
		return name
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Uint8:
		return "int"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if of.Name() == "ExtraValue" {
			return "Strings"
		}
		return "[]" + typeName(of.Elem())
	case reflect.Map:
		return "{}" + typeName(of.Elem())
	case reflect.Struct:
		return message(of)
	}
	panic("a field of type " + of.String())
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
