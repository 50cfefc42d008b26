module purlin.dev/purlin/tests/configurations

go 1.26.0
