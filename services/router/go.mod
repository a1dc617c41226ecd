module github.com/hearth-run/hearth/services/router

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	connectrpc.com/connect/v2 v2.0.2
	connectrpc.com/grpchealth v1.5.0
	github.com/hearth-run/hearth/gen v0.0.0
	github.com/hearth-run/hearth/internal/kit v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.50.0
	google.golang.org/protobuf v1.36.12
	pgregory.net/rapid v1.3.0
)

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.2 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260819154853-08b0e4226688 // indirect
)

replace (
	github.com/hearth-run/hearth/gen => ../../gen
	github.com/hearth-run/hearth/internal/kit => ../../internal/kit
)
