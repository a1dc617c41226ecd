module github.com/hearth-run/hearth/hearth

go 1.26.0

require (
	github.com/hearth-run/hearth/gen v0.0.0
	github.com/hearth-run/hearth/internal/kit v0.0.0
	github.com/hearth-run/hearth/pyrunner v0.0.0
	github.com/hearth-run/hearth/sandbox v0.0.0
	github.com/hearth-run/hearth/adapters v0.0.0
	github.com/hearth-run/hearth/services/controlplane v0.0.0
	github.com/hearth-run/hearth/services/runtimed v0.0.0
	github.com/hearth-run/hearth/services/gateway v0.0.0
	github.com/hearth-run/hearth/services/router v0.0.0
	github.com/hearth-run/hearth/services/worker v0.0.0
)

replace (
	github.com/hearth-run/hearth/gen => ../gen
	github.com/hearth-run/hearth/internal/kit => ../internal/kit
	github.com/hearth-run/hearth/pyrunner => ../pyrunner
	github.com/hearth-run/hearth/sandbox => ../sandbox
	github.com/hearth-run/hearth/adapters => ../adapters
	github.com/hearth-run/hearth/services/controlplane => ../services/controlplane
	github.com/hearth-run/hearth/services/runtimed => ../services/runtimed
	github.com/hearth-run/hearth/services/gateway => ../services/gateway
	github.com/hearth-run/hearth/services/router => ../services/router
	github.com/hearth-run/hearth/services/worker => ../services/worker
)
