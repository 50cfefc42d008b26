# Thin recipes; CI runs .ci/run.
default: lint test

fmt:
    cargo fmt

lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

test:
    cargo test

# Tests of the library, and those on files that start no provider and play no random histories.
test-fast *FILTER:
    cargo test --lib --test local -- {{FILTER}} --skip judge --skip provider_calls --skip plugins --skip page_examples \
        --skip cli::provider --skip cli::migrating --skip cli::ignored_changes --skip cli::families --skip installing

# Writes crds/ and the chart's copy.
generate:
    UPDATE_EXPECT=1 cargo test -p purlin-api
    cp crds/*.yaml charts/purlin/files/crds/

ci:
    bash .ci/run
