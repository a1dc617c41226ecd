module github.com/hearth-run/hearth/pyrunner

go 1.26.0

require go.uber.org/goleak v1.3.0
