module github.com/hearth-run/hearth/services/controlplane

go 1.26.0

require (
	github.com/hearth-run/hearth/gen v0.0.0
	github.com/hearth-run/hearth/internal/kit v0.0.0
)

replace (
	github.com/hearth-run/hearth/gen => ../../gen
	github.com/hearth-run/hearth/internal/kit => ../../internal/kit
)
