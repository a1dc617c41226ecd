package e2e

import (
	"context"
	"slices"
	"testing"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/grpcreflect/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/hearth-run/hearth/internal/kit/dial"
)

// A gRPC client that knows nothing but an address finds the services and calls
// one: what grpcurl does.
func TestReflection(t *testing.T) {
	h := up(t)
	h.create(t, "hello", "python", "app.hello", examples("python", "hello"))
	for door, want := range map[string]protoreflect.FullName{
		"controlplane": "hearth.v1.RunService", "gateway": "hearth.v1.InvokeService",
	} {
		client := grpc(t, h.doors[door])
		ctx, cancel := context.WithCancel(t.Context())
		stream := grpcreflect.NewClient(client).NewStream(ctx)
		names, err := stream.ListServices()
		if err != nil || !slices.Contains(names, want) {
			t.Errorf("%s lists %v, %v", door, names, err)
		}
		if door == "gateway" {
			invokeByReflection(t, client, stream)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

func grpc(t *testing.T, address string) *connect.Client {
	t.Helper()
	dialer := dial.New(nil)
	t.Cleanup(dialer.Close)
	client, base, err := dialer.HTTP(address, true)
	if err != nil {
		t.Fatal(err)
	}
	return connect.NewClient(connecthttp.NewTransport(client, base, connecthttp.WithGRPC()))
}

func invokeByReflection(t *testing.T, client *connect.Client, stream *grpcreflect.ClientStream) {
	t.Helper()
	method := find(t, stream, "hearth.v1.InvokeService", "Invoke")
	req := dynamicpb.NewMessage(method.Input())
	if err := protojson.Unmarshal([]byte(`{"name":"hello","input":"eyJuYW1lIjoiQWRhIn0="}`), req); err != nil {
		t.Fatal(err)
	}
	res := dynamicpb.NewMessage(method.Output())
	spec := connect.Spec{StreamType: connect.StreamTypeUnary, Schema: method, Procedure: "/hearth.v1.InvokeService/Invoke"}
	if err := client.CallUnary(t.Context(), spec, req, res); err != nil {
		t.Fatal(err)
	}
	output := res.Get(method.Output().Fields().ByName("output")).Bytes()
	if string(output) != `{"greeting":"Hello, Ada!"}` {
		t.Errorf("answered %s", output)
	}
}

// find builds a method from the descriptors that the server has told.
func find(t *testing.T, stream *grpcreflect.ClientStream, service, method protoreflect.Name) protoreflect.MethodDescriptor {
	t.Helper()
	protos, err := stream.FileContainingSymbol(protoreflect.FullName(service))
	if err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(complete(t, stream, protos))
	if err != nil {
		t.Fatal(err)
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.ServiceDescriptor).Methods().ByName(method)
}

// complete fetches what the files import.
func complete(t *testing.T, stream *grpcreflect.ClientStream, files []*descriptorpb.FileDescriptorProto) *descriptorpb.FileDescriptorSet {
	t.Helper()
	known := map[string]bool{}
	for _, f := range files {
		known[f.GetName()] = true
	}
	for i := 0; i < len(files); i++ {
		for _, name := range files[i].GetDependency() {
			if known[name] {
				continue
			}
			more, err := stream.FileByFilename(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range more {
				if !known[f.GetName()] {
					known[f.GetName()] = true
					files = append(files, f)
				}
			}
		}
	}
	return &descriptorpb.FileDescriptorSet{File: files}
}
