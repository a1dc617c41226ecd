module github.com/hearth-run/hearth/services/router

go 1.26.0

require (
	github.com/hearth-run/hearth/gen v0.0.0
	github.com/hearth-run/hearth/internal/kit v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.50.0
	pgregory.net/rapid v1.3.0
)

replace (
	github.com/hearth-run/hearth/gen => ../../gen
	github.com/hearth-run/hearth/internal/kit => ../../internal/kit
)
