module github.com/hearth-run/hearth/examples

go 1.26.0
