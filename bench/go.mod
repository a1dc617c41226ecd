module github.com/hearth-run/hearth/bench

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/hearth-run/hearth/gen v0.0.0
	github.com/hearth-run/hearth/internal/kit v0.0.0
	go.uber.org/goleak v1.3.0
)

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.2 // indirect
	connectrpc.com/connect/v2 v2.0.2 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/hearth-run/hearth/gen => ../gen
	github.com/hearth-run/hearth/internal/kit => ../internal/kit
	github.com/hearth-run/hearth/pyrunner => ../pyrunner
	github.com/hearth-run/hearth/sandbox => ../sandbox
)
