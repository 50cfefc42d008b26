# syntax=docker/dockerfile:1
# Two stages: the first builds, the second holds nothing but the program and the C library it was linked against.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY rust-toolchain.toml Cargo.toml Cargo.lock ./
# The dependencies change seldom; building them before the sources are copied keeps them in a layer of their own.
RUN mkdir -p src tests/local benches \
    && echo 'fn main() {}' | tee src/main.rs tests/local/main.rs > benches/local.rs \
    && touch src/lib.rs \
    && cargo build --release --locked --bin purlin || true
COPY src ./src
COPY benches ./benches
COPY tests ./tests
RUN touch src/lib.rs src/main.rs \
    && cargo build --release --locked --bin purlin \
    && strip target/release/purlin

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/purlin /usr/local/bin/purlin
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/purlin"]
CMD ["controller"]
