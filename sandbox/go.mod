module github.com/hearth-run/hearth/sandbox

go 1.26.0
