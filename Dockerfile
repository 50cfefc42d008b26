# syntax=docker/dockerfile:1
# The first stage builds the program. The second holds nothing but the program and the C library that it needs: both stages
# are Debian 12, so that the versions of the library match.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The caches remain between builds, so that a change of the sources does not compile the dependencies again.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin purlin \
    && strip -o /purlin target/release/purlin

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /purlin /usr/local/bin/purlin
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/purlin"]
CMD ["controller"]
