module github.com/hearth-run/hearth/services/worker

go 1.26.0

require (
	github.com/hearth-run/hearth/gen v0.0.0
	github.com/hearth-run/hearth/internal/kit v0.0.0
	github.com/hearth-run/hearth/pyrunner v0.0.0
	github.com/hearth-run/hearth/sandbox v0.0.0
)

require (
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)

replace (
	github.com/hearth-run/hearth/gen => ../../gen
	github.com/hearth-run/hearth/internal/kit => ../../internal/kit
	github.com/hearth-run/hearth/pyrunner => ../../pyrunner
	github.com/hearth-run/hearth/sandbox => ../../sandbox
)
