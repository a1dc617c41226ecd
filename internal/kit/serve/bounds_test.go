package serve_test

import (
	"maps"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/serverless"
)

func register(change func(*executorv1.RegisterFunctionRequest)) proto.Message {
	req := &executorv1.RegisterFunctionRequest{
		RunUid: "run", RegistrationAttempt: 1, WorkingDir: "/w", Handler: "a.b",
		RegistrationDigest: "sha256:" + strings.Repeat("0", 64), Env: map[string]string{"A": "b"},
	}
	change(req)
	return req
}

func invoke(change func(*executorv1.InvokeFunctionRequest)) proto.Message {
	req := &executorv1.InvokeFunctionRequest{Registration: &executorv1.FunctionRegistration{RunUid: "run", RegistrationId: "reg_1"}}
	change(req)
	return req
}

func create(change func(*hearthv1.CreateRunRequest)) proto.Message {
	req := &hearthv1.CreateRunRequest{Name: "a", Spec: &hearthv1.RunSpec{
		Runtime: "python", Mode: &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: "a.b"}},
	}}
	change(req)
	return req
}

// The rules in the protos hold at their bounds and one beyond (CONTRACT 1.2).
func TestBounds(t *testing.T) {
	many := map[string]string{}
	for i := range 257 {
		many["A"+strings.Repeat("x", i)] = ""
	}
	fits := maps.Clone(many)
	delete(fits, "A"+strings.Repeat("x", 256))
	for name, tc := range map[string]struct {
		msg  proto.Message
		good bool
	}{
		"register":  {register(func(*executorv1.RegisterFunctionRequest) {}), true},
		"attempt 0": {register(func(r *executorv1.RegisterFunctionRequest) { r.RegistrationAttempt = 0 }), false},
		"digest upper case": {register(func(r *executorv1.RegisterFunctionRequest) {
			r.RegistrationDigest = "sha256:" + strings.Repeat("A", 64)
		}), false},
		"run uid leaves its folder": {register(func(r *executorv1.RegisterFunctionRequest) { r.RunUid = ".." }), false},
		"run uid with a slash":      {register(func(r *executorv1.RegisterFunctionRequest) { r.RunUid = "a/b" }), false},
		"env 256":                   {register(func(r *executorv1.RegisterFunctionRequest) { r.Env = fits }), true},
		"env 257":                   {register(func(r *executorv1.RegisterFunctionRequest) { r.Env = many }), false},
		"env name":                  {register(func(r *executorv1.RegisterFunctionRequest) { r.Env = map[string]string{"1A": ""} }), false},
		"env reserved":              {register(func(r *executorv1.RegisterFunctionRequest) { r.Env = map[string]string{"HEARTH_X": ""} }), false},
		"env NUL":                   {register(func(r *executorv1.RegisterFunctionRequest) { r.Env = map[string]string{"A": "a\x00b"} }), false},
		"env value 32 KiB": {register(func(r *executorv1.RegisterFunctionRequest) {
			r.Env = map[string]string{"A": strings.Repeat("x", 32<<10)}
		}), true},
		"env value 32 KiB + 1": {register(func(r *executorv1.RegisterFunctionRequest) {
			r.Env = map[string]string{"A": strings.Repeat("x", 32<<10+1)}
		}), false},
		"input 1 MiB":                {invoke(func(r *executorv1.InvokeFunctionRequest) { r.Input = make([]byte, 1<<20) }), true},
		"input 1 MiB + 1":            {invoke(func(r *executorv1.InvokeFunctionRequest) { r.Input = make([]byte, 1<<20+1) }), false},
		"invocation id 128":          {invoke(func(r *executorv1.InvokeFunctionRequest) { r.InvocationId = strings.Repeat("x", 128) }), true},
		"invocation id 129":          {invoke(func(r *executorv1.InvokeFunctionRequest) { r.InvocationId = strings.Repeat("x", 129) }), false},
		"invocation id multi-byte":   {invoke(func(r *executorv1.InvokeFunctionRequest) { r.InvocationId = "é" }), false},
		"invocation id with newline": {invoke(func(r *executorv1.InvokeFunctionRequest) { r.InvocationId = "a\n" }), false},
		"timeout negative":           {invoke(func(r *executorv1.InvokeFunctionRequest) { r.TimeoutMillis = -1 }), false},
		"timeout 15 min":             {invoke(func(r *executorv1.InvokeFunctionRequest) { r.TimeoutMillis = 900000 }), true},
		"timeout beyond":             {invoke(func(r *executorv1.InvokeFunctionRequest) { r.TimeoutMillis = 900001 }), false},
		"no registration":            {invoke(func(r *executorv1.InvokeFunctionRequest) { r.Registration = nil }), false},
		"create":                     {create(func(*hearthv1.CreateRunRequest) {}), true},
		"name with dots":             {create(func(r *hearthv1.CreateRunRequest) { r.Name = "a.b" }), false},
		"name 63":                    {create(func(r *hearthv1.CreateRunRequest) { r.Name = strings.Repeat("a", 63) }), true},
		"name 64":                    {create(func(r *hearthv1.CreateRunRequest) { r.Name = strings.Repeat("a", 64) }), false},
		"no mode":                    {create(func(r *hearthv1.CreateRunRequest) { r.Spec.Mode = nil }), false},
		"no spec":                    {create(func(r *hearthv1.CreateRunRequest) { r.Spec = nil }), false},
		"negative timeout":           {create(func(r *hearthv1.CreateRunRequest) { r.Spec.Timeout = durationpb.New(-1) }), false},
		"budget max below alloc":     {&serverless.ResourceBudget{Alloc: 2, Max: 1}, false},
		"budget without max":         {&serverless.ResourceBudget{Alloc: 2}, true},
		"checkpoint and none":        {&serverless.ExecutionConfig{CheckpointId: "x", DisableOptimizedExecution: true}, false},
	} {
		if err := protovalidate.Validate(tc.msg); (err == nil) != tc.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
