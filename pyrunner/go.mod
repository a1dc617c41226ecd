module github.com/hearth-run/hearth/pyrunner

go 1.26.0
