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
    UPDATE_EXPECT=1 cargo test --lib api::
    cp crds/*.yaml charts/purlin/files/crds/

ci:
    bash .ci/run
