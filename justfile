# Thin recipes; CI runs .ci/run.
default: lint test

fmt:
    cargo fmt

lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

test:
    cargo test

# Writes crds/ and the chart's copy.
generate:
    cargo run --quiet -- crds > crds/resources.purlin.dev.yaml
    cp crds/*.yaml charts/purlin/files/crds/

ci:
    bash .ci/run
