# syntax=docker/dockerfile:1
# The first stage builds the program. The second holds nothing but the program and the C library that it needs: both stages
# are Debian 12, so that the versions of the library match. `.ci/pin-images` pins both images by digest for a release.
ARG RUST_IMAGE=rust:1.95.0-bookworm
ARG RUNTIME_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${RUST_IMAGE} AS build
WORKDIR /src
# It adds the list of the dependencies to the program, which scanners read from the image.
RUN cargo install --locked cargo-auditable@0.7.7
# The dependencies have a layer of their own, so that a change of the sources does not compile them again. Cargo requires
# a file for every target of Cargo.toml.
COPY Cargo.toml Cargo.lock ./
COPY crates/model/Cargo.toml crates/model/
COPY crates/process/Cargo.toml crates/process/
COPY crates/api/Cargo.toml crates/api/
COPY crates/tfprovider/Cargo.toml crates/tfprovider/
COPY crates/engine/Cargo.toml crates/engine/
COPY crates/drivers/Cargo.toml crates/drivers/
COPY crates/runtime/Cargo.toml crates/runtime/
COPY crates/controller/Cargo.toml crates/controller/
COPY crates/migrate/Cargo.toml crates/migrate/
COPY crates/apiserver/Cargo.toml crates/apiserver/
COPY crates/testkit/Cargo.toml crates/testkit/
COPY crates/version/Cargo.toml crates/version/
COPY crates/cty/Cargo.toml crates/cty/
COPY crates/hcl/Cargo.toml crates/hcl/
COPY crates/language/Cargo.toml crates/language/
COPY crates/configuration/Cargo.toml crates/configuration/
COPY crates/terraform/Cargo.toml crates/terraform/
COPY crates/fetch/Cargo.toml crates/fetch/
COPY crates/modules/Cargo.toml crates/modules/
COPY crates/programs/Cargo.toml crates/programs/
RUN mkdir -p src benches tests/local tests/cluster tests/simulation \
    && echo 'fn main() {}' | tee src/main.rs benches/local.rs benches/providers.rs benches/cluster.rs benches/hostile.rs \
        tests/local/main.rs tests/cluster/main.rs tests/simulation/main.rs \
    && touch src/lib.rs \
    && for crate in crates/*; do mkdir "$crate/src" && touch "$crate/src/lib.rs"; done \
    && cargo auditable build --release --locked --bin purlin
COPY crates crates
COPY src src
COPY docs/types docs/types
# A copied file can be older than the output of the previous step, and Cargo compiles only what is newer.
RUN touch src/main.rs src/lib.rs crates/*/src/lib.rs \
    && cargo auditable build --release --locked --bin purlin \
    && strip -o purlin target/release/purlin

FROM ${RUNTIME_IMAGE}
COPY --from=build /src/purlin /usr/local/bin/purlin
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/purlin"]
CMD ["controller"]
