package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The conventions of the Kubernetes API, as kube-api-linter would check them. These checks are ours
// because that linter cannot be had where this project is built and tested; they look at the generated
// CRDs, which is what users get, and so need no linter of Go.

// node is a place in a schema.
type node struct {
	name, path string
	schema     apiextensionsv1.JSONSchemaProps
}

func TestConventions(t *testing.T) {
	for _, plural := range []string{"authstacks", "latencytests", "latencycomparisons"} {
		for name, property := range schema(t, plural).Properties {
			if name != "spec" && name != "status" {
				continue
			}
			walk(property, name, func(node node) {
				for _, problem := range problems(node) {
					t.Errorf("%s: %s %s", plural, node.path, problem)
				}
			})
		}
	}
}

// problems of one field with the conventions.
func problems(node node) []string {
	var found []string
	schema := node.schema
	check := func(ok bool, problem string) {
		if !ok {
			found = append(found, problem)
		}
	}
	check(schema.Type != "number", "is a float; write integers of a smaller unit")
	check(schema.Default == nil || node.path == "status", "has a default in the schema, which freezes today's advice in stored objects")
	switch schema.Type {
	case "string":
		bounded := schema.MaxLength != nil || len(schema.Enum) > 0 || schema.Format != "" || schema.Pattern != ""
		check(bounded, "is a string without maxLength, enum, format or pattern")
	case "array":
		check(schema.MaxItems != nil, "is a list without maxItems")
		check(schema.XListType != nil, "is a list without listType")
		structs := schema.Items != nil && schema.Items.Schema != nil && schema.Items.Schema.Type == "object"
		check(!structs || schema.XListType == nil || *schema.XListType != "set", "is a set of structs; write a map or atomic")
	case "object":
		check(schema.AdditionalProperties == nil || schema.MaxProperties != nil, "is a map without maxProperties")
	}
	if node.name != "" {
		first, _, _ := strings.Cut(schema.Description, " ")
		first = strings.Trim(first, ",.:;'")
		check(strings.EqualFold(first, node.name), "has a description that starts with "+first+" and not with the name of the field")
	}
	for _, rule := range schema.XValidations {
		check(rule.Message != "", "has a rule without a message: "+rule.Rule)
	}
	return found
}

// What a stack prints exists.
func TestColumnsExist(t *testing.T) {
	filter := regexp.MustCompile(`\[\?\([^)]*\)]`)
	for _, plural := range []string{"authstacks", "latencytests", "latencycomparisons"} {
		for _, column := range definition(t, plural).Spec.Versions[0].AdditionalPrinterColumns {
			at := schema(t, plural)
			for _, name := range strings.Split(strings.TrimPrefix(filter.ReplaceAllString(column.JSONPath, ".[]"), "."), ".") {
				var ok bool
				if name == "[]" {
					at, ok = *at.Items.Schema, true
				} else if name == "creationTimestamp" {
					ok = true
				} else {
					at, ok = at.Properties[name]
				}
				if !ok {
					t.Errorf("%s: the column %s shows %s, and there is no %s", plural, column.Name, column.JSONPath, name)
				}
			}
		}
	}
}

// Every field says whether it is required; controller-gen would otherwise guess from omitempty.
func TestFieldsSayWhetherTheyAreRequired(t *testing.T) {
	sources, err := filepath.Glob(filepath.Join(root, "api", "v1alpha1", "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for _, source := range sources {
		parsed, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			declared, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := declared.Type.(*ast.StructType)
			if !ok || strings.HasSuffix(declared.Name.Name, "List") {
				return false
			}
			for _, field := range structure.Fields.List {
				if len(field.Names) == 0 || field.Tag == nil {
					continue
				}
				comments := ""
				if field.Doc != nil {
					for _, line := range field.Doc.List {
						comments += line.Text + "\n"
					}
				}
				name := declared.Name.Name + "." + field.Names[0].Name
				optional, required := strings.Contains(comments, "// +optional"), strings.Contains(comments, "// +required")
				if optional == required {
					t.Errorf("%s has to have exactly one of +optional and +required", name)
				}
				tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
				if omit := strings.Contains(tag, ",omitempty"); omit != optional {
					t.Errorf("%s is optional=%v and has omitempty=%v", name, optional, omit)
				}
			}
			return false
		})
	}
}

// walk visits a schema and everything below it but what other groups define.
func walk(schema apiextensionsv1.JSONSchemaProps, path string, visit func(node)) {
	name := path[strings.LastIndex(path, ".")+1:]
	if strings.HasSuffix(path, "]") || strings.HasSuffix(path, "}") {
		name = ""
	}
	visit(node{name: name, path: path, schema: schema})
	// ResourceRequirements and Conditions are Kubernetes' own types.
	if _, foreign := schema.Properties["limits"]; foreign || name == "conditions" {
		return
	}
	for property, below := range schema.Properties {
		walk(below, path+"."+property, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(*schema.Items.Schema, path+"[]", visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(*schema.AdditionalProperties.Schema, path+"{}", visit)
	}
}

func schema(t *testing.T, plural string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	return *definition(t, plural).Spec.Versions[0].Schema.OpenAPIV3Schema
}

func definition(t *testing.T, plural string) apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "config", "crd", "bases", "authstack.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var found apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &found); err != nil {
		t.Fatal(err)
	}
	return found
}
