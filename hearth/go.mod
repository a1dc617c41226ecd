module github.com/hearth-run/hearth/hearth

go 1.26.0

require (
	connectrpc.com/connect/v2 v2.0.2
	github.com/alecthomas/kong v1.17.0
	github.com/hearth-run/hearth/gen v0.0.0
	github.com/hearth-run/hearth/internal/kit v0.0.0
	go.yaml.in/yaml/v3 v3.0.5
	google.golang.org/protobuf v1.36.12
)

require (
	buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go v1.36.12-20260825204119-511051f7f437.2 // indirect
	github.com/lmittmann/tint v1.2.1 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/term v0.48.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260819154853-08b0e4226688 // indirect
)

replace (
	github.com/hearth-run/hearth/adapters => ../adapters
	github.com/hearth-run/hearth/gen => ../gen
	github.com/hearth-run/hearth/internal/kit => ../internal/kit
	github.com/hearth-run/hearth/pyrunner => ../pyrunner
	github.com/hearth-run/hearth/sandbox => ../sandbox
	github.com/hearth-run/hearth/services/controlplane => ../services/controlplane
	github.com/hearth-run/hearth/services/gateway => ../services/gateway
	github.com/hearth-run/hearth/services/router => ../services/router
	github.com/hearth-run/hearth/services/runtimed => ../services/runtimed
	github.com/hearth-run/hearth/services/worker => ../services/worker
)
