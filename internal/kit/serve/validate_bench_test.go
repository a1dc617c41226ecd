package serve_test

import (
	"testing"

	"buf.build/go/protovalidate"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

// What validation costs on the hot path of an invocation.
func BenchmarkValidateInvoke(b *testing.B) {
	validator, err := protovalidate.New()
	if err != nil {
		b.Fatal(err)
	}
	req := &executorv1.InvokeFunctionRequest{
		Registration: &executorv1.FunctionRegistration{RunUid: "run-1", RegistrationId: "reg_01J"},
		InvocationId: "01J", Input: make([]byte, 100), ContentType: "application/json",
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := validator.Validate(req); err != nil {
			b.Fatal(err)
		}
	}
}
